"""Sends the namespaces of a node; the client enters them to start programs there."""

from __future__ import annotations

import os
from contextlib import ExitStack

from emu.daemon.messages import GetNamespaces, Namespaces
from emu.daemon.served_lab import Answer, ServedLab
from emu.errors import UsageError
from emu.lab.command import environment
from emu.lab.out_of_band.network import agent_of
from emu.lab.plan import LAB
from emu.spec import management_names

_NAMESPACES = ("user", "pid", "net", "mnt")
"""In the order of entering: the first gives the right to enter the others."""
_ENVIRONMENT = ("PATH", "OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR")
"""The variables by which programs in the lab find its Open vSwitch and Debian's programs."""


def answer(lab: ServedLab, query: GetNamespaces) -> Answer:
    pids, hosts = lab.session.lab.pids, lab.topology.host
    own = {key: value for key, value in environment().items() if key in _ENVIRONMENT}
    tasks = {name: pids[name] for name in (LAB, *hosts)}
    agent = _agent(lab, query)
    if agent is not None:
        return Namespaces(own, tasks, {}), _opened(pids[agent])
    if query.node is not None:
        lab.check_node(query.node)
    routing = lab.session.routing
    system = routing.systems.get(query.node or "") if routing else None
    if system is not None:
        return Namespaces(own | system.environment, tasks, system.places), _opened(system.task)
    return Namespaces(own, tasks, {}), _opened(tasks.get(query.node or LAB, pids[LAB]))


def _agent(lab: ServedLab, query: GetNamespaces) -> str | None:
    """The name of the namespaces on the management network; None if others are meant. Raises
    UsageError if there are none."""
    network = lab.session.plan.out_of_band
    if query.node in management_names.NODES and network is not None:
        return agent_of(query.node)
    if not query.management or query.node is None:
        return None
    lab.check_node(query.node)
    if network is None:
        raise UsageError(
            f"the lab {lab.session.spec.name} has no management network: bring it up with "
            "management: on in its spec"
        )
    return agent_of(query.node)


def _opened(task: int) -> list[int]:
    """Open files of all namespaces. Raises OSError if one cannot be opened; none stays open."""
    files: list[int] = []
    with ExitStack() as on_error:
        for kind in _NAMESPACES:
            files.append(os.open(f"/proc/{task}/ns/{kind}", os.O_RDONLY))
            on_error.callback(os.close, files[-1])
        on_error.pop_all()
    return files
