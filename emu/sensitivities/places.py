"""Where the traffic is, so that each mistake and failure is at a place that matters.

    port      the port of a switch that sent most bytes in the fabric's own runs, over all seeds
    switch    its switch
    cable     the cable between switches with most bytes whose loss leaves each flow a path
    spare     the switch with most bytes whose loss leaves each flow a path
    sender    the host that sends most bytes of the workload
    receiver  the host that receives most

Of equals, the first in the order of the topology is taken. The runs are those without any change,
so the same spec and seeds always have the same places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from emu.spec.outages import degraded
from emu.spec.scenario import Spec
from topologies.graph import Cable, Port, Topology

SENT = "tx_wire_bytes"
"""The counter of a port's bytes, with all that they occupy on the line."""


@dataclass(frozen=True)
class BusiestPlaces:
    """The busiest parts of a fabric."""

    port: Port
    cable: Port | None
    """A port of it; None: no cable between switches has traffic that could take another path."""
    spare: str | None
    """A switch; None: without any that has traffic, some flow has no path."""
    sender: str
    receiver: str
    half_ns: int | None
    """Half of the time that the runs take; None: some flow does not finish."""

    @property
    def switch(self) -> str:
        return self.port.node


def places_of(
    spec: Spec, sent_bytes: Mapping[str, int], last_ns: Iterable[int | None]
) -> BusiestPlaces:
    """The places of a fabric. `sent_bytes`: port -> its bytes, over all runs. `last_ns`: the last
    completion of each run."""
    topology, ends = spec.topology.build(), list(last_ns)
    pairs = {(flow.src, flow.dst) for flow in spec.fabric_flows()}
    known = [end for end in ends if end is not None]
    senders, receivers = _bytes_of_hosts(spec)
    return BusiestPlaces(
        port=max(topology.switch_ports, key=lambda port: sent_bytes[topology.port_name[port]]),
        cable=_busiest_cable(topology, sent_bytes, pairs),
        spare=_busiest_spare(topology, sent_bytes, pairs),
        sender=max(topology.host, key=senders.__getitem__),
        receiver=max(topology.host, key=receivers.__getitem__),
        half_ns=min(known) // 2 if len(known) == len(ends) else None,
    )


def _bytes_of_hosts(spec: Spec) -> tuple[Counter[str], Counter[str]]:
    """The bytes that each host sends, and that each receives."""
    workload = spec.workload()
    senders: Counter[str] = Counter()
    receivers: Counter[str] = Counter()
    for flow in spec.fabric_flows(workload):
        senders[flow.bytes_from] += workload.bytes_of(flow)
        receivers[flow.bytes_to] += workload.bytes_of(flow)
    return senders, receivers


_Pairs = Collection[tuple[str, str]]
"""Sources and destinations of flows."""


def _busiest_cable(topology: Topology, sent_bytes: Mapping[str, int], pairs: _Pairs) -> Port | None:
    def sent(cable: Cable) -> int:
        return sum(sent_bytes[topology.port_name[port]] for port in (cable.a, cable.b))

    between = [
        cable
        for cable in topology.cables
        if cable.a.node in topology.switch and cable.b.node in topology.switch and sent(cable)
    ]
    for cable in sorted(between, key=lambda cable: -sent(cable)):
        if _have_paths(pairs, topology, [cable]):
            return cable.a
    return None


def _busiest_spare(topology: Topology, sent_bytes: Mapping[str, int], pairs: _Pairs) -> str | None:
    sent: Counter[str] = Counter()
    for port in topology.switch_ports:
        sent[port.node] += sent_bytes[topology.port_name[port]]
    for switch, _ in (+sent).most_common():
        cables = [topology.cable[port] for port in topology.ports[switch]]
        if _have_paths(pairs, topology, cables):
            return switch
    return None


def _have_paths(pairs: _Pairs, topology: Topology, lost: Iterable[Cable]) -> bool:
    """Whether all of them have a path without these cables."""
    left = degraded(topology, frozenset(lost))
    return all(left.stages(*pair) for pair in pairs)
