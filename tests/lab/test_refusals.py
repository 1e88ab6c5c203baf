"""What a live run refuses before it starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.errors import UsageError
from emu.lab.live import run_live
from emu.spec.model import load_spec


def test_the_real_clock_does_not_elide_payload(tmp_path: Path) -> None:
    """Packets on interfaces have all their bytes; the remedy is in the error."""
    spec = load_spec(Path("topologies/pair.emu.yml"), ["payload=elided"])
    with pytest.raises(UsageError, match=r"--clock virtual, or --set payload=real"):
        run_live(spec, spec.topology.build(), out=tmp_path)
