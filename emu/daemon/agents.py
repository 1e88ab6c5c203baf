"""Starts the processes that act for the agents on a lab's management network: the exporter, and the
sender of syslog messages."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from importlib.util import find_spec

from emu.daemon.exporter.messages import SetUpExporter
from emu.daemon.syslog.messages import SetUpSyslog
from emu.errors import HostError
from emu.lab.ipc.messages import Done
from emu.lab.out_of_band.network import Network, agent_of
from emu.lab.probe import require
from emu.lab.processes import wait_for
from emu.lab.session import Session
from emu.lab.supervisor import Supervisor
from emu.spec.management import Management
from emu.spec.management_names import COLLECTOR

NewSession = Callable[[], socket.socket]
"""Begins a session with the lab, and returns the client's end of it."""


def need(management: Management) -> None:
    """Raises HostError if this machine lacks what the management network needs."""
    if management.firewall:
        require("nftables")
    if management.exporter is not None and find_spec("prometheus_client") is None:
        raise HostError(
            "the Python package prometheus_client is missing, which the exporter needs",
            remedy="install it (pip install prometheus_client), or set management.exporter: off",
        )


def start_agents(
    session: Session, network: Network, supervisor: Supervisor, new_session: NewSession
) -> None:
    """Starts what the spec asks for. Returns when all of it works. Raises FabricError."""
    spec, settings = session.spec.to_json(), network.settings
    tasks = {node: session.lab.pids[agent_of(node)] for node in network.nodes}
    if settings.exporter is not None:
        addresses = {node: network.addresses[node] for node in network.nodes}
        exporter = SetUpExporter(spec, settings.exporter.port, addresses, tasks)
        _start("exporter", exporter, supervisor, new_session)
    if settings.syslog:
        syslog = SetUpSyslog(spec, network.addresses[COLLECTOR], tasks)
        _start("syslog", syslog, supervisor, new_session)


def _start(
    name: str,
    setup: SetUpExporter | SetUpSyslog,
    supervisor: Supervisor,
    new_session: NewSession,
) -> None:
    program = (sys.executable, "-m", f"emu.daemon.{name}.main")
    process = supervisor.spawn(f"the process of the agents' {name}", program)
    with new_session() as far:
        process.send(setup, [far.fileno()])
    wait_for(process, Done)
