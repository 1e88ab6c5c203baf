"""The traffic that measures how long packets are lost, after RFC 7747.

A constant load without retransmission: datagrams (UD) of one size, each flow one in every interval.
Each packet that is lost stands for one interval, so a flow's loss-derived time is its lost packets
times the interval. Flows go both ways between hosts of one leaf and hosts of up to four others,
with several queue pairs for each pair of hosts, so that hashes use all paths.

Beside them go reliable connections (RC), one each way for each pair of hosts, with a tenth of that
rate. They show whether a NIC's timeouts outlast the event.

    |--- lead ---|------------------- horizon -------------------|
    start        event                        all routes changed |  last probe

Source: RFC 7747 (benchmarking convergence of link-state routing), 4, 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from random import Random
from typing import Any

from emu.convergence.events import Incident
from emu.spec.scenario import Spec
from emu.units import PS_PER_NS, ack_timeout_ps
from topologies.graph import Topology

SIZE_BYTES = 64
"""Payload of a probe."""
_WIRE_BITS = 8 * (SIZE_BYTES + 110)
"""Of a probe, with its headers and the gap to the next, at most."""
_SHARE = 0.5
"""Of the slowest link, the most that all probes of a leaf offer in one direction."""
_FAR_LEAVES = 4
_FEWEST_HOSTS, _MOST_HOSTS = 4, 8
"""Of the leaf, at least and at most, if it has so many."""
_FLOWS_OF_AN_UPLINK = 8
_MOST_QUEUE_PAIRS = 8
_PACKETS = 100_000
"""Of all flows of a run together, about."""
_FEWEST_PACKETS, _MOST_PACKETS = 500, 3000
"""Of a flow from the event to the end."""
_LEAD = 20
"""Packets of a flow before the event."""
_RC_EVERY = 10
"""Intervals between two messages of a reliable connection."""
_RC = "rc-"


@dataclass(frozen=True)
class Pairs:
    """The hosts that probe: those of the leaf and their partners, by the far leaf."""

    of_leaf: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    queue_pairs: int
    """For each pair of hosts and each direction."""

    @property
    def flows(self) -> int:
        """Of probes, both ways."""
        return 2 * self.queue_pairs * sum(len(near) for near, _ in self.of_leaf)


@dataclass(frozen=True)
class Pace:
    """When probes are sent."""

    interval_ns: int
    count: int
    """Packets of each flow."""
    start_ns: int
    event_ns: int
    """When the event happens."""

    @property
    def last_ns(self) -> int:
        """When the last probe is sent."""
        return self.start_ns + (self.count - 1) * self.interval_ns


def pairs_of(topology: Topology, incident: Incident) -> Pairs:
    """The probing hosts of an incident, which are the same under each control plane."""
    rng = Random(f"{incident.seed} probes")
    own = topology.leaves[incident.leaf]
    uplinks = sum(topology.peer[p].node in topology.switch for p in topology.ports[incident.leaf])
    many = min(_MOST_HOSTS, max(_FEWEST_HOSTS, uplinks), len(own))
    others = [leaf for leaf in topology.leaves if leaf != incident.leaf]
    far = sorted(
        rng.sample(others, min(_FAR_LEAVES, len(others))), key=topology.leaf_number.__getitem__
    )
    of_leaf = []
    for leaf in far:
        hosts = topology.leaves[leaf]
        count = min(many, len(hosts))
        of_leaf.append((tuple(rng.sample(own, count)), tuple(rng.sample(hosts, count))))
    pairs = sum(len(near) for near, _ in of_leaf)
    queue_pairs = min(_MOST_QUEUE_PAIRS, max(1, ceil(_FLOWS_OF_AN_UPLINK * uplinks / pairs)))
    return Pairs(tuple(of_leaf), queue_pairs)


def interval_ns(topology: Topology, pairs: Sequence[Pairs], horizon_ns: int) -> int:
    """The interval of all these probes, so that a flow has enough packets in `horizon_ns` after the
    event, and no link more than half of its rate; a round number."""
    flows = max(own.flows for own in pairs)
    packets = min(_MOST_PACKETS, max(_FEWEST_PACKETS, _PACKETS // flows))
    slowest_bps = min(cable.rate_bps for cable in topology.cables)
    least = 1e9 * _WIRE_BITS * flows / 2 / (slowest_bps * _SHARE)
    return _rounded_up(max(least, horizon_ns / packets))


def _rounded_up(value: float) -> int:
    """The next 1, 2 or 5 times a power of ten, at least 100."""
    power: int = 10 ** max(2, floor(log10(max(value, 1))))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= value)


def pace_of(interval: int, horizon_ns: int, start_ns: int) -> Pace:
    """Probes from `start_ns` until `horizon_ns` after the event."""
    event_ns = start_ns + _LEAD * interval + interval // 2
    return Pace(interval, _LEAD + 1 + ceil(horizon_ns / interval), start_ns, event_ns)


def traffic(pairs: Pairs, pace: Pace) -> Iterator[dict[str, Any]]:
    """The entries of the spec's `traffic:`."""
    for number, (near, far) in enumerate(pairs.of_leaf, 1):
        for way, source, to in (("out", near, far), ("in", far, near)):
            for queue_pair in range(1, pairs.queue_pairs + 1):
                yield {
                    **_entry(f"{way}{number}-{queue_pair}", source, to, pace),
                    "transport": "ud",
                    "op": "send",
                    "count": pace.count,
                    "every": f"{pace.interval_ns}ns",
                    "outstanding": pace.count,
                }
            yield {
                **_entry(f"{_RC}{way}{number}", source, to, pace),
                "count": max(1, pace.count // _RC_EVERY),
                "every": f"{_RC_EVERY * pace.interval_ns}ns",
            }


def _entry(name: str, source: Sequence[str], to: Sequence[str], pace: Pace) -> dict[str, Any]:
    return {
        "name": name,
        "pattern": "pair",
        "from": list(source),
        "to": list(to),
        "size": SIZE_BYTES,
        "start": f"{pace.start_ns}ns",
        "burst": 1,
    }


def is_reliable(entry: str) -> bool:
    """Whether an entry of the traffic is one of reliable connections."""
    return entry.startswith(_RC)


def patience_ns(spec: Spec) -> int:
    """The longest that a reliable connection of any host goes on without an answer. The timer may
    take up to twice its value, after which the last retry is over."""
    nics = (spec.host(name).nic for name in spec.topology.build().host)
    return max(2 * (nic.retry_count + 1) * ack_timeout_ps(nic.timeout) for nic in nics) // PS_PER_NS
