"""infiniband-diags in a simulated fabric: the operators' tools, with the emulator's counters.

The tools ask ibsim, which carries no data and counts only the tools' own packets. So the
emulator first writes its counters into ibsim; both use the PMA's names. PortCounters have
32 bits, PortCountersExtended 64 (`perfquery -x`).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from emu.subnet.ibsim import Ibsim
from emu.subnet.programs import program
from topologies.graph import Topology
from topologies.guids import port_number

_SECONDS_TO_ANSWER = 20.0
_STICKS_AT = 2**32 - 1
"""The PMA's counters stop at their largest value."""
_COUNTERS = (
    *("PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts", "PortXmitWait"),
    *("PortXmitDiscards", "PortRcvErrors", "PortRcvSwitchRelayErrors"),
    *("PortRcvConstraintErrors", "PortXmitConstraintErrors"),
    *("SymbolErrorCounter", "LinkDownedCounter", "VL15Dropped"),
)
_EXTENDED = {
    "PortXmitData": ("PortXmitData",),
    "PortRcvData": ("PortRcvData",),
    "PortXmitPkts": ("PortXmitPkts", "PortUnicastXmitPkts"),
    "PortRcvPkts": ("PortRcvPkts", "PortUnicastRcvPkts"),
}
"""Our counter -> those of PortCountersExtended: all packets are unicast."""
ACROSS = {
    "PortXmitData": "PortRcvData",
    "PortRcvData": "PortXmitData",
    "PortXmitPkts": "PortRcvPkts",
    "PortRcvPkts": "PortXmitPkts",
}
"""A host's counter -> the counter of the same packets at the other end of its cable."""


def tell_counters(
    simulator: Ibsim,
    topology: Topology,
    ports: Mapping[str, Mapping[str, int]],
    host_waits: Mapping[str, int],
) -> None:
    """Writes counters into the simulator: of emulated switch ports, by port name, and of hosts.

    A host's counters are those of its switch port with sent and received swapped, so that they
    continue when another NIC process takes over. `host_waits`: PortXmitWait by host, default 0.
    Queries to the simulator return these values from now on.
    """
    counted = dict(ports)
    for host in topology.hosts:
        port = topology.ports[host.name][0]
        switch = ports.get(topology.port_name[topology.peer[port]], {})
        own = {name: switch.get(far, 0) for name, far in ACROSS.items()}
        own["PortXmitWait"] = host_waits.get(host.name, 0)
        counted[topology.port_name[port]] = own
    commands = []
    for name, counters in counted.items():
        port = topology.port_named[name]
        place = f'"{port.node}"[{port_number(topology, port)}]'
        commands += [f"PerformanceSet {place} {value}" for value in _values(counters)]
    simulator.send_and_wait(*commands)


def _values(counters: Mapping[str, int]) -> Iterator[str]:
    for name in _COUNTERS:
        yield f"PortCounters.{name}={min(counters.get(name, 0), _STICKS_AT)}"
    for name, extended in _EXTENDED.items():
        for counter in extended:
            yield f"PortCountersExtended.{counter}={counters.get(name, 0)}"


class Diagnosis(NamedTuple):
    """The result of a tool."""

    text: str
    code: int
    """Its exit code."""


def diagnose(simulator: Ibsim, node: str, command: Sequence[str]) -> Diagnosis:
    """Runs a tool on this host or switch. Raises HostError if it is not installed."""
    tool = program(command[0], package="infiniband-diags")
    try:
        done = subprocess.run(
            [*tool, *command[1:]],
            cwd=simulator.workdir,
            env={**os.environ, **simulator.environment(node, simulator.workdir)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS_TO_ANSWER,
        )
    except subprocess.TimeoutExpired:
        return Diagnosis(f"{command[0]} had no answer for {_SECONDS_TO_ANSWER:g} s\n", 1)
    return Diagnosis(done.stdout, done.returncode)
