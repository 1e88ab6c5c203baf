"""Rules for the workload: sources, destinations, sizes and times of messages."""

from __future__ import annotations

from collections.abc import Iterator

from emu import resources
from emu.spec.diagnostic import Diagnostic, KeyPath, unknown_name
from emu.spec.rules.provenance import for_host
from emu.spec.scenario import Spec
from emu.spec.traffic.collectives import Collective
from emu.spec.traffic.entry import AmongEntry, MessageEntry, TrafficEntry
from emu.spec.traffic.experts import Experts
from emu.spec.traffic.inference import Inference
from emu.spec.traffic.job import GraphEntry
from emu.spec.traffic.patterns import AllToAll, Incast, Outcast, Pair, Permutation, PingPong
from emu.spec.traffic.random_traffic import Background, HotSpot
from emu.spec.traffic.storage import StorageEntry
from emu.spec.traffic.training import TrainingStep
from emu.units import format_size, format_time_ns, write_rate, write_size, write_time
from traffic.graph import LONGEST_MESSAGE_BYTES, LONGEST_WORK_NS
from traffic.job import FLOAT_BYTES

_FLOW_BYTES = 4000
"""The least memory of a flow: two queue pairs, and a row in every table of results."""
_MESSAGE_BYTES = 300
"""The least memory of a message, besides its payload."""
_COPIES = 2
"""Payload is in memory at the sender and at the receiver, for the comparison."""


def flows_are_not_too_many(spec: Spec) -> Iterator[Diagnostic]:
    flows = sum(entry.flow_count for entry in spec.traffic)
    if finding := _too_much(f"makes {flows:,} flows", flows * _FLOW_BYTES):
        yield Diagnostic(("traffic",), f"{finding}; name fewer hosts")


def _too_much(what: str, needed_bytes: int) -> str:
    """A text if all memory of this machine is certainly too little; otherwise empty."""
    there = resources.machine_memory_bytes()
    if needed_bytes <= there:
        return ""
    return (
        f"{what}, for which {format_size(needed_bytes)} of memory are needed at least, and this "
        f"machine has {format_size(there)}"
    )


def nobody_is_alone(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in enumerate(spec.traffic):
        if isinstance(entry, AmongEntry) and len(entry.among) < 2:
            text = f"{entry.among[0]} has no host to send to; name two hosts or more"
            yield Diagnostic(("traffic", index, "among"), text, about=(("topology",),))


def names_are_unique(spec: Spec) -> Iterator[Diagnostic]:
    first: dict[str, int] = {}
    for index, entry in enumerate(spec.traffic):
        if first.setdefault(entry.name, index) != index:
            yield Diagnostic(
                ("traffic", index, "name"),
                f"another entry has the name {entry.name!r} too; rename one, so that their results "
                "can be distinguished",
                about=(("traffic", first[entry.name], "name"),),
            )


def hosts_exist(spec: Spec) -> Iterator[Diagnostic]:
    known = spec.topology.build().host
    for index, entry in enumerate(spec.traffic):
        for key, names in entry.hosts.items():
            for name in names:
                if name not in known:
                    text = unknown_name("host", name, list(known))
                    yield Diagnostic(("traffic", index, key), text, about=(("topology",),))


def senders_and_receivers_suit_the_pattern(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in enumerate(spec.traffic):
        path: KeyPath = ("traffic", index, "to")
        about: tuple[KeyPath, ...] = (("traffic", index, "from"), ("traffic", index, "pattern"))
        if isinstance(entry, Incast) and len(entry.to) > 1:
            text = f"an incast has one receiver, not {len(entry.to)}; use pattern: pair"
            yield Diagnostic(path, text, about)
        elif isinstance(entry, Outcast) and len(entry.sources) > 1:
            text = f"an outcast has one sender, not {len(entry.sources)}; use pattern: pair"
            yield Diagnostic(("traffic", index, "from"), text, (path, about[1]))
        elif isinstance(entry, HotSpot) and len(entry.hot) > 1:
            text = f"a hot spot is one host, not {len(entry.hot)}; name one, e.g. {entry.hot[0]}"
            yield Diagnostic(("traffic", index, "hot"), text)
        elif isinstance(entry, Pair | PingPong) and len(entry.to) != len(entry.sources):
            yield Diagnostic(
                path,
                f"{len(entry.sources)} in from and {len(entry.to)} in to do not make pairs; "
                "name as many receivers as senders",
                about,
            )


def hot_spots_have_others_around(spec: Spec) -> Iterator[Diagnostic]:
    known = spec.topology.build().host
    for index, entry in enumerate(spec.traffic):
        if not isinstance(entry, HotSpot) or len(entry.hot) > 1 or entry.hot[0] not in known:
            continue
        about: tuple[KeyPath, ...] = (("traffic", index, "among"),)
        if entry.hot[0] not in entry.among:
            text = f"{entry.hot[0]} is not among the hosts of this entry; take one of these"
            yield Diagnostic(("traffic", index, "hot"), text, about)
        elif len(entry.senders) < 2:
            text = f"{entry.senders[0]} could send to no host but {entry.hot[0]}; name a third host"
            yield Diagnostic(about[0], text, (("traffic", index, "hot"),))


def bursts_have_a_period(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in enumerate(spec.traffic):
        if isinstance(entry, MessageEntry) and entry.burst > 1 and not entry.every_ps:
            text = "the time between bursts is not given; add every, e.g. every: 50us"
            yield Diagnostic(("traffic", index, "burst"), text)


def loads_are_below_the_line_rate(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    for index, entry in enumerate(spec.traffic):
        if not isinstance(entry, Background):
            continue
        for host in entry.among:
            if host not in topology.host:
                continue
            line_bps = sum(topology.cable[port].rate_bps for port in topology.ports[host])
            if entry.rate_bps > line_bps:
                yield Diagnostic(
                    ("traffic", index, "rate"),
                    f"{host} can send no more than {write_rate(line_bps)}; lower rate",
                    about=(("topology",),),
                )
                break


def asked_priorities_have_a_dscp(spec: Spec) -> Iterator[Diagnostic]:
    """On Ethernet, packets of a priority need a DSCP that maps to it."""
    if not spec.fabric_kind.is_ethernet:
        return
    known = spec.topology.build().host
    for index, entry in enumerate(spec.traffic):
        for host in entry.senders:
            if entry.priority is None or host not in known:
                continue
            priorities = spec.classes_of(host).priorities
            if entry.priority not in priorities:
                yield Diagnostic(
                    ("traffic", index, "priority"),
                    f"at {host} no DSCP maps to priority {entry.priority}, only to "
                    f"{', '.join(map(str, sorted(priorities)))}; choose one of these, or change "
                    "switches.classes.dscp",
                    about=(("switches",), ("topology",)),
                )
                break


def nobody_sends_to_itself(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in enumerate(spec.traffic):
        if "from" not in entry.hosts:
            continue  # such patterns never pair a host with itself
        for source, destination in entry.pairs(spec.seed):
            if source == destination:
                yield Diagnostic(
                    ("traffic", index, "from"),
                    f"{source} would send to itself; take it out of from or out of to",
                    about=(("traffic", index, "to"), ("traffic", index, "pattern")),
                )


def controls_that_need_acks_get_them(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in enumerate(spec.traffic):
        key, why, senders, remedy = _sent_without_ack(entry, spec.seed)
        for host in sorted(senders & spec.topology.build().host.keys()):
            nic = spec.host(host).nic
            if nic.control(nic.cc).needs_every_ack:
                yield Diagnostic(
                    ("traffic", index, key),
                    f"{why}, so {host} with cc: {nic.cc} would never slow down; {remedy}, or cc: "
                    "dcqcn",
                    about=(for_host(spec, host, "nic", "cc"), ("topology",)),
                )
                break


def _sent_without_ack(entry: TrafficEntry, seed: int) -> tuple[str, str, set[str], str]:
    """The key at fault, the reason, the hosts that send data without acknowledgements, and a
    remedy. The key is empty if all data are acknowledged."""
    remedy = "use op: write on transport: rc"
    if isinstance(entry, StorageEntry) and entry.ios.fetched:
        why = "the data of writes are READ responses, which are not acknowledged"
        return "in_capsule", why, set(entry.sources), "raise in_capsule to the block's size"
    if not isinstance(entry, MessageEntry):
        return "", "", set(), ""
    if entry.op == "read":
        to = {to for _, to in entry.pairs(seed)}
        return "op", "READ responses are not acknowledged", to, remedy
    if entry.transport != "rc":
        why = f"{entry.transport} has no acknowledgements"
        return "transport", why, {source for source, _ in entry.pairs(seed)}, remedy
    return "", "", set(), ""


def every_rank_has_a_piece(spec: Spec) -> Iterator[Diagnostic]:
    """A piece has at least one float32."""
    for index, entry in enumerate(spec.traffic):
        if not isinstance(entry, Collective):
            continue
        path, about = ("traffic", index, "size"), (("traffic", index, "among"),)
        if entry.size_bytes % FLOAT_BYTES:
            more = write_size(-(-entry.size_bytes // FLOAT_BYTES) * FLOAT_BYTES)
            text = f"{write_size(entry.size_bytes)} are not a whole number of float32s; take {more}"
            yield Diagnostic(path, text)
        elif entry.cuts_pieces and entry.size_bytes < FLOAT_BYTES * len(entry.among):
            yield Diagnostic(
                path,
                f"{write_size(entry.size_bytes)} cannot be cut into a float32 for each of "
                f"{len(entry.among)} ranks; raise size",
                about,
            )


def hosts_suit_what_they_do(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in enumerate(spec.traffic):
        if isinstance(entry, GraphEntry) and (reason := entry.why_hosts_do_not_fit()):
            yield Diagnostic(("traffic", index), reason)


def messages_are_not_too_many(spec: Spec) -> Iterator[Diagnostic]:
    messages = sum(entry.message_count for entry in spec.traffic)
    if finding := _too_much(f"makes {messages:,} messages", messages * _MESSAGE_BYTES):
        yield Diagnostic(("traffic",), f"{finding}; send fewer, larger messages")


def tokens_have_as_many_experts_as_they_choose(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in enumerate(spec.traffic):
        if isinstance(entry, Experts) and entry.top_k > entry.expert_count:
            yield Diagnostic(
                ("traffic", index, "top_k"),
                f"each token is sent to {entry.top_k} experts, and there are "
                f"{entry.expert_count}; lower top_k, or raise experts",
                about=(("traffic", index, "experts" if entry.experts else "among"),),
            )


def messages_and_work_are_not_too_long(spec: Spec) -> Iterator[Diagnostic]:
    """Applies to sizes derived from a model; other sizes have a limit of their own."""
    for index, entry in enumerate(spec.traffic):
        if not isinstance(entry, Experts | TrainingStep | Inference):
            continue
        graph, path = entry.graph(spec.seed), ("traffic", index)
        longest_bytes, longest_ns = (
            int(column.max(initial=0)) for column in (graph.size_bytes, graph.lasts_ns)
        )
        if longest_bytes > LONGEST_MESSAGE_BYTES:
            text = (
                f"makes a message of {format_size(longest_bytes)}; RDMA allows up to 2 GiB, so "
                "describe a smaller model or shorter sequences, or share it among more ranks"
            )
            yield Diagnostic(path, text)
        if longest_ns > LONGEST_WORK_NS:
            text = (
                f"makes work of {format_time_ns(longest_ns)}; the longest emulated work is "
                f"{format_time_ns(LONGEST_WORK_NS)}, so describe a smaller model"
            )
            yield Diagnostic(path, text)


def the_run_fits_into_memory(spec: Spec) -> Iterator[Diagnostic]:
    """Collectives send the same buffers again and again; their memory is checked at the start."""
    size = sum(entry.total_bytes for entry in spec.traffic if isinstance(entry, MessageEntry))
    if spec.payload == "real" and (
        finding := _too_much(f"sends {format_size(size)}", _COPIES * size)
    ):
        text = f"{finding}; use payload: elided, on the virtual clock, or send less"
        yield Diagnostic(("traffic",), text, about=(("payload",),))


def streams_are_of_plain_patterns(spec: Spec) -> Iterator[Diagnostic]:
    """A TCP stream sends from its start to its end; its messages cannot wait for other messages."""
    for index, entry in enumerate(spec.traffic):
        if not spec.by_tcp(entry):
            continue
        if not isinstance(entry, AllToAll | Incast | Outcast | Pair | Permutation):
            why = f"the messages of pattern {entry.pattern} wait for their time or for each other"
        elif entry.every_ps:
            why = "bursts wait for their time"
        else:
            continue
        yield Diagnostic(
            ("traffic", index, "pattern"),
            f"{why}, and a TCP stream sends from its start to its end; use stack: rdma, or "
            "another pattern",
            about=(("traffic", index, "stack"), ("hosts", "stack")),
        )


def streams_use_no_rdma_classes(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in enumerate(spec.traffic):
        if not spec.by_tcp(entry) or spec.fabric_kind.is_ethernet:
            continue
        for key in ("priority", "partition"):
            if getattr(entry, key) is not None:
                yield Diagnostic(
                    ("traffic", index, key),
                    "applies to RDMA messages, and TCP uses ib0, in the default partition at its "
                    "NIC's service level; leave it out, or use stack: rdma",
                    about=(("traffic", index, "stack"), ("hosts", "stack")),
                )


def messages_start_before_the_end(spec: Spec) -> Iterator[Diagnostic]:
    for index, entry in enumerate(spec.traffic):
        if entry.start_ps >= spec.time_limit_ps:
            yield Diagnostic(
                ("traffic", index, "start"),
                f"the run is over by then (time_limit is {write_time(spec.time_limit_ps)}); "
                "start earlier, or raise time_limit",
                about=(("time_limit",),),
            )


SOUND = (
    hosts_suit_what_they_do,
    flows_are_not_too_many,
    messages_are_not_too_many,
    nobody_is_alone,
)
RULES = (
    names_are_unique,
    hosts_exist,
    senders_and_receivers_suit_the_pattern,
    hot_spots_have_others_around,
    bursts_have_a_period,
    loads_are_below_the_line_rate,
    asked_priorities_have_a_dscp,
    nobody_sends_to_itself,
    controls_that_need_acks_get_them,
    every_rank_has_a_piece,
    tokens_have_as_many_experts_as_they_choose,
    messages_and_work_are_not_too_long,
    the_run_fits_into_memory,
    streams_are_of_plain_patterns,
    streams_use_no_rdma_classes,
    messages_start_before_the_end,
)
