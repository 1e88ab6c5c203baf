"""What the management network refuses, and says when this machine lacks something."""

from __future__ import annotations

import socket

import pytest

from emu.daemon import agents
from emu.daemon.exporter.server import listen
from emu.errors import FabricError, HostError
from emu.spec.management import Management


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(FabricError, match=rf"leaf1: .* port {port} is in use; set manag"):
            listen("leaf1", "127.0.0.1", port)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "find_spec", lambda name: None)
    with pytest.raises(HostError, match=r"prometheus_client is missing.*pip install"):
        agents.need(Management(firewall=False))
    agents.need(Management.model_validate({"firewall": False, "exporter": "off"}))
