"""Traffic whose senders leave their cables idle, so that senders and not the fabric are the limit.

A flow with `count` messages, `outstanding` of them in flight at a time, posts the next message when
one is acknowledged. Until then its cable is idle:

    sender     ├─ message ─┤· · · · · · · · · · ·├─ message ─┤        outstanding: 1
    receiver                  ├─ message ─┤ ACK

If the flows of an entry cannot keep a host's cable busy even in an idle fabric, no setting of the
fabric changes that. Queues cannot hold more than these messages, either, so a pause storm may stop
before it reaches other switches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import ceil

from emu.measure.bound import Batch, Paths, fabric_of, packets_of
from emu.report.run_view import RunFacts
from emu.spec.traffic.entry import MessageEntry
from emu.spec.traffic.patterns import PingPong
from emu.units import write_rate, write_size
from traffic.graph import Flow
from traffic.verb import Verb

BUSY = 0.9
"""Senders are the limit when they can use a cable for less than this share of the time."""


def limited_by_senders(run: RunFacts) -> list[str]:
    """A sentence for each entry whose senders could not fill a cable in an idle fabric."""
    return [
        sentence
        for entry in run.spec.traffic
        if isinstance(entry, MessageEntry) and not run.spec.by_tcp(entry)
        for sentence in _limits(run, entry)
    ]


def _limits(run: RunFacts, entry: MessageEntry) -> Iterator[str]:
    if entry.every_ps or entry.outstanding >= entry.count or isinstance(entry, PingPong):
        return
    shares = _shares(run, entry)
    if not shares or max(shares.values()) >= BUSY:
        return
    (host, _), share = max(shares.items(), key=lambda item: item[1])
    plural = "s" if entry.outstanding > 1 else ""
    yield (
        f"The senders of {entry.name} are the limit, not the fabric: with {entry.outstanding}"
        f" outstanding message{plural} of {write_size(entry.size_bytes)}, they use at most"
        f" {share:.0%} of {host}'s {write_rate(_rate_bps(run, host))} cable, and wait for"
        f" acknowledgements for the rest of the time.{_cure(entry, share)}"
    )


def _cure(entry: MessageEntry, share: float) -> str:
    """A sentence about the number of outstanding messages that would keep the cable busy, or about
    all messages if there are fewer."""
    wanted = ceil(entry.outstanding / share) + 1
    if wanted <= entry.count:
        return f" With outstanding: {wanted}, they would keep it busy."
    whole = share * entry.count / entry.outstanding
    if whole < BUSY:
        return f" With all {entry.count} (outstanding: {entry.count}), they could use {whole:.0%}."
    return f" With all {entry.count} (outstanding: {entry.count}), they would keep it busy."


def _shares(run: RunFacts, entry: MessageEntry) -> dict[tuple[str, bool], float]:
    """(host, whether it sends) -> the share of time for which an entry's flows together could use
    that direction of the host's cable."""
    fabric = fabric_of(run.spec, run.topology)
    shares: dict[tuple[str, bool], float] = defaultdict(float)
    for flow in _flows_of(run, entry):
        mtu_bytes = fabric.mtu_bytes[flow.bytes_from]
        packets = packets_of(entry.size_bytes, mtu_bytes, flow.verb, fabric.overhead)
        ends = flow.src, flow.dst, flow.verb
        each_ns = round_trip_ns(run.paths, *ends, entry.size_bytes) / entry.outstanding
        for host in (flow.bytes_from, flow.bytes_to):
            busy_ns = 8e9 * packets.total / _rate_bps(run, host)
            shares[host, host == flow.bytes_from] += min(1.0, busy_ns / each_ns)
    return shares


def _flows_of(run: RunFacts, entry: MessageEntry) -> list[Flow]:
    """The flows of an entry that cross the fabric."""
    return run.once(_flows_by_entry).get(entry.name, [])


def _flows_by_entry(run: RunFacts) -> dict[str, list[Flow]]:
    flows: dict[str, list[Flow]] = defaultdict(list)
    for flow in run.spec.fabric_flows():
        flows[flow.traffic].append(flow)
    return flows


def round_trip_ns(paths: Paths, src: str, dst: str, verb: Verb, size_bytes: int) -> int:
    """The time of a message and of the ACK or request in the other direction, on idle cables. The
    actual time is a little longer."""
    sender, receiver = (dst, src) if verb.fetches else (src, dst)
    message = Batch(sender, receiver, verb, size_bytes)
    return paths.alone_ns(message) + paths.alone_ns(Batch(receiver, sender, Verb.SEND, 0))


def _rate_bps(run: RunFacts, host: str) -> int:
    return run.topology.cable[run.topology.ports[host][0]].rate_bps
