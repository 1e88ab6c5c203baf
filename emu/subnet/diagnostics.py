"""infiniband-diags in a simulated fabric: the tools that operators know, with counters that move.

The tools ask ibsim, which carries no data and counts none. Whoever emulates the data
tells it its own counters first; they have the PMA's names in both places.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from emu.subnet.ibsim import Ibsim
from emu.subnet.programs import program
from topologies.graph import Topology
from topologies.guids import port_number

DIAGNOSTICS = (
    *("ibnetdiscover", "iblinkinfo", "ibroute", "ibtracert", "ibhosts", "ibswitches", "ibstat"),
    *("smpquery", "perfquery", "ibqueryerrors", "sminfo", "saquery", "dump_lfts"),
)
_SECONDS_TO_ANSWER = 20.0
_STICKS_AT = 2**32 - 1
"""Counters of the PMA stay at their largest value."""
_COUNTERS = (
    *("PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts", "PortXmitWait"),
    *("PortXmitDiscards", "PortRcvErrors", "PortRcvSwitchRelayErrors"),
    *("PortRcvConstraintErrors", "PortXmitConstraintErrors"),
    *("SymbolErrorCounter", "LinkDownedCounter", "VL15Dropped"),
)


def tell_counters(
    simulator: Ibsim, topology: Topology, ports: Mapping[str, Mapping[str, int]]
) -> None:
    """Gives the simulator what the emulated ports have counted, by port name."""
    commands = []
    for name, counters in ports.items():
        port = topology.port_named[name]
        place = f'"{port.node}"[{port_number(topology, port)}]'
        for counter in _COUNTERS:
            value = min(counters.get(counter, 0), _STICKS_AT)
            commands.append(f"PerformanceSet {place} PortCounters.{counter}={value}")
    simulator.tell(*commands)


def diagnose(simulator: Ibsim, node: str, command: Sequence[str]) -> str:
    """What a tool says when it runs on this host. Raises HostError when it is not there."""
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
        return f"{command[0]} had no answer for {_SECONDS_TO_ANSWER:g} s\n"
    return done.stdout
