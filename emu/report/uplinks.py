"""Equal ports of a switch with unequal loads, as when a hash puts several flows on one port.

    leaf1 ──┬─ spine1   ▇▇▇▇▇▇▇▇▇▇   busy for 52 % of the time, packets wait for it
            ├─ spine2   ▇▇▇▇▇        26 %
            └─ spine3   ▇▇           10 %, and nothing waits for it

Ports are equal if a switch may send packets to the same hosts by any of them, and their cables
have the same rate. A sentence is written if two times are long: the fullest port was busy for
much longer than with an even share, and packets waited for its busy cable while none waited for
the emptiest port. The first alone is harmless: if no packets wait, the hosts have no more to
send. If flow control stops the port, the cause is downstream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from emu.report.run_view import RunFacts
from emu.units import format_time_ns
from topologies.graph import Port, Topology

MUCH = 0.1
"""The least part of the run's time that counts as long."""
BUSY = 0.9
"""A cable is busy in an interval if it is used for more than this share of it."""


@dataclass(frozen=True)
class Uneven:
    """The fullest and the emptiest of some equal ports of a switch."""

    switch: str
    port: str
    emptiest: str
    of: int
    """The number of equal ports."""
    share: float
    """The share of the equal ports' traffic that the fullest port sent."""
    beyond: float
    """The part of the run's time for which it was busy beyond an even share."""


def uneven_ports(run: RunFacts) -> list[str]:
    """A sentence about the switch with the greatest difference, if there is one."""
    return run.once(_sentences) if run.conclusive and run.has_packets else []


def _sentences(run: RunFacts) -> list[str]:
    start_ns, end_ns = run.window_ns
    uneven = (own for own in _groups(run) if own.beyond >= MUCH)
    for found in sorted(uneven, key=lambda own: (-own.beyond, own.port)):
        waited = _waited_for_one_alone(run, found)
        if waited >= MUCH:
            full = format_time_ns(waited * (end_ns - start_ns))
            return [
                f"Equal ports had unequal loads: of the {found.of} ports of {found.switch} to"
                f" the same hosts, {found.port} sent {found.share:.0%}; for {full}, packets waited"
                f" for its full cable while none waited for {found.emptiest}."
                f"{_remedy(run, found.switch)}"
            ]
    return []


def _remedy(run: RunFacts, switch: str) -> str:
    """A sentence with settings that spread load; empty unless the choice of ports is the only
    possible cause."""
    if run.recording.faults or run.spec.switch(switch).routing.kind not in ("ecmp", "ecmp-qp"):
        return ""
    if run.uses_credits:
        return (
            " switches.routing.kind adaptive or spray spreads flows that the subnet manager's"
            " tables put on one port."
        )
    return (
        " More queue pairs, or switches.routing.kind flowlet, adaptive or spray, spread flows"
        " that a hash puts on one port."
    )


def _groups(run: RunFacts) -> Iterator[Uneven]:
    topology, load = run.topology, run.port_load
    for switch, ports in equal_ports(topology):
        names = [topology.port_name[port] for port in ports]
        busy = {name: load[name].utilisation for name in names if name in load}
        together = sum(busy.values())
        if len(busy) == len(ports) and together:
            fullest, emptiest = max(busy, key=busy.__getitem__), min(busy, key=busy.__getitem__)
            share = busy[fullest] / together
            beyond = busy[fullest] - together / len(busy)
            yield Uneven(switch, fullest, emptiest, len(busy), share, beyond)


def equal_ports(topology: Topology) -> set[tuple[str, tuple[Port, ...]]]:
    """Each switch with a group of its equal ports, two or more."""
    of_several = {
        (switch, ports)
        for switch in topology.switch
        for ports in topology.next_hops_of(switch).lists
        if len(ports) > 1
    }
    return {
        (switch, ports)
        for switch, ports in of_several
        if len({topology.cable[port].rate_bps for port in ports}) == 1
    }


def _waited_for_one_alone(run: RunFacts, own: Uneven) -> float:
    """The share of the run in which packets waited at the fullest port although its cable was busy,
    and no packets waited at the emptiest."""
    series, (start_ns, end_ns) = run.recording.series, run.window_ns
    took_ns = np.diff(series.time_ns)
    during = (series.time_ns[1:] > start_ns) & (series.time_ns[1:] <= end_ns) & (took_ns > 0)
    if not during.any():
        return 0.0
    fullest, emptiest = run.sampled[own.port], run.sampled[own.emptiest]
    # A frame that arrives and a frame that leaves are no queue.
    stand = series.queue_bytes[1:][during] > 2 * run.spec.largest_frame_bytes
    sent = np.diff(series.tx_bytes[:, fullest])[during] / took_ns[during]
    rate_bps = run.topology.cable[run.topology.port_named[own.port]].rate_bps
    busy = sent * 8e9 > BUSY * rate_bps
    waited = busy & stand[:, fullest] & ~stand[:, emptiest]
    return float(took_ns[during][waited].sum() / (end_ns - start_ns))
