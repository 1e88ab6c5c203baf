"""Starts the exporter of a lab."""

from __future__ import annotations

import socket
import sys
from importlib.util import find_spec

from emu.daemon.exporter.messages import SetUpExporter
from emu.errors import HostError
from emu.lab.ipc.messages import Done
from emu.lab.out_of_band.network import Network, agent_of
from emu.lab.probe import require
from emu.lab.processes import wait_for
from emu.lab.session import Session
from emu.lab.supervisor import Supervisor
from emu.spec.management import Management

_PROGRAM = (sys.executable, "-m", "emu.daemon.exporter.main")


def need(management: Management) -> None:
    """Raises HostError if this machine lacks what the management network needs."""
    if management.firewall:
        require("nftables")
    if management.exporter is not None and find_spec("prometheus_client") is None:
        raise HostError(
            "the Python package prometheus_client is missing, which the exporter needs",
            remedy="install it (pip install prometheus_client), or set management.exporter: off",
        )


def start_exporter(
    session: Session, network: Network, supervisor: Supervisor, far: socket.socket
) -> None:
    """Starts the exporter, if the spec has one. Returns when it listens. `far`: the exporter's end
    of a session with the lab. Raises FabricError."""
    exporter = network.settings.exporter
    if exporter is None:
        return
    process = supervisor.spawn("the exporter", _PROGRAM)
    pids = session.lab.pids
    setup = SetUpExporter(
        session.spec.to_json(),
        exporter.port,
        {node: network.addresses[node] for node in network.nodes},
        {node: pids[agent_of(node)] for node in network.nodes},
    )
    process.send(setup, [far.fileno()])
    wait_for(process, Done)
