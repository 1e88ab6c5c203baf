"""Rules for the operations of the workload: their sizes and transports."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.diagnostic import Diagnostic
from emu.spec.rules.provenance import for_host
from emu.spec.scenario import Spec
from emu.spec.traffic.entry import MessageEntry
from emu.spec.traffic.patterns import PingPong
from emu.units import write_size
from traffic.verb import Verb

ATOMIC_BYTES = 8
CARRIED = {
    "uc": ("write", "write-imm", "send", "send-imm"),
    "ud": ("send", "send-imm"),
}
"""The operations of each transport. RC supports all operations."""


def atomics_are_words(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in _entries(spec):
        if Verb(entry.op).is_atomic and entry.size_bytes != ATOMIC_BYTES:
            yield Diagnostic(
                ("traffic", index, "size"),
                f"{entry.op} works on a word of 8 bytes, not on {write_size(entry.size_bytes)}; "
                "make it 8",
                about=(("traffic", index, "op"),),
            )


def transports_carry_the_operation(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in _entries(spec):
        carried = CARRIED.get(entry.transport, (entry.op,))
        if entry.op not in carried:
            yield Diagnostic(
                ("traffic", index, "op"),
                f"{entry.transport} has no {entry.op}, only {', '.join(carried)}; "
                "use transport: rc",
                about=(("traffic", index, "transport"),),
            )


def datagrams_fit_into_a_packet(spec: Spec) -> Iterator[Diagnostic]:
    known = spec.topology.build().host
    for index, entry in _entries(spec):
        ends = sorted({host for hosts in entry.hosts.values() for host in hosts} & known.keys())
        if entry.transport != "ud" or not ends:
            continue
        narrowest = min(ends, key=lambda host: spec.host(host).nic.mtu)
        mtu = spec.host(narrowest).nic.mtu
        if entry.size_bytes > mtu:
            yield Diagnostic(
                ("traffic", index, "size"),
                f"a datagram is one packet, and those of {narrowest} hold {mtu} bytes; lower size, "
                "or use transport: uc",
                about=(("traffic", index, "transport"), for_host(spec, narrowest, "nic", "mtu")),
            )


def pongs_know_of_pings(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in _entries(spec):
        if isinstance(entry, PingPong) and Verb(entry.op).fetches:
            yield Diagnostic(
                ("traffic", index, "op"),
                f"the responder of {entry.op} is not notified and could not answer; use pattern: "
                "pair, whose messages wait for each other too",
                about=(("traffic", index, "pattern"),),
            )


def _entries(spec: Spec) -> Iterator[tuple[int, MessageEntry]]:
    for index, entry in enumerate(spec.traffic):
        if isinstance(entry, MessageEntry):
            yield index, entry


RULES = (
    atomics_are_words,
    transports_carry_the_operation,
    datagrams_fit_into_a_packet,
    pongs_know_of_pings,
)
