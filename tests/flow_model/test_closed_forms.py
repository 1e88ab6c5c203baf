"""The flow model against closed forms: they hold exactly, but for the rounding of picoseconds."""

from __future__ import annotations

import pytest

from emu.measure.bound import Batch, Paths, fabric_of
from tests.support.flow_runs import by_flows, ends_ns, last_end_ns
from tests.support.idle_star import acks_ns, latency_ns, message_ns, wire_ns
from tests.support.small_fabrics import PAIR, chain, spec_of, star
from traffic.verb import Verb

EXACT = 2
"""Nanoseconds: each time is cut to a whole nanosecond, and a transfer rounded to a picosecond."""


def star_with(hosts: int, *entries: str) -> str:
    return star(hosts) + f"traffic: [{', '.join(entries)}]\n"


def line(switches: int) -> str:
    """The parking lot: one host at each switch of a line, and one more at the end."""
    return f"topology: {{kind: parking-lot, switches: {switches}, hosts_per_switch: 1}}\n"


@pytest.mark.parametrize("size", [1, 4096, 4097, 1_000_000])
@pytest.mark.parametrize("links", [2, 3, 6])
def test_one_message_takes_as_long_as_arithmetic_says(size: int, links: int) -> None:
    """The bound of a message alone is what it takes."""
    text = chain(links)
    spec = spec_of(text, f"traffic.flow.size={size}")
    paths = Paths(spec.topology.build(), fabric_of(spec, spec.topology.build()))
    alone = paths.alone_ns(Batch("h1", "h2", Verb.WRITE, size))
    assert last_end_ns(by_flows(text, f"traffic.flow.size={size}")) == pytest.approx(
        alone, abs=EXACT
    )


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_a_path_of_several_rates_is_as_slow_as_its_slowest_link(fabric: str) -> None:
    """Also when the slowest link comes last, or the switches cut through."""
    text = PAIR.replace("fabric: {delay: 500ns}", "fabric: {rate: 25Gbit, delay: 500ns}")
    spec = spec_of(text, f"fabric={fabric}")
    paths = Paths(spec.topology.build(), fabric_of(spec, spec.topology.build()))
    alone = paths.alone_ns(Batch("h1", "h2", Verb.WRITE, 1_000_000))
    assert last_end_ns(by_flows(text, f"fabric={fabric}")) == pytest.approx(alone, abs=EXACT)


@pytest.mark.parametrize("flows", [2, 3, 10])
def test_flows_between_two_hosts_share_alike(flows: int) -> None:
    """n messages at once over one path end together, n times as late."""
    entries = [f"{{name: f{n}, pattern: pair, from: h1, to: h2, size: 1MB}}" for n in range(flows)]
    ends = ends_ns(by_flows(star_with(2, *entries)))
    wanted = flows * wire_ns(1_000_000) + latency_ns(1_000_000)
    assert list(ends.values()) == [pytest.approx(wanted, abs=EXACT)] * flows


def test_messages_of_one_queue_pair_go_one_after_another() -> None:
    """The last of ten ends when all ten have crossed the link, without a gap between them."""
    recording = by_flows(
        star_with(
            2, "{name: f, pattern: pair, from: h1, to: h2, size: 100KB, count: 10, outstanding: 10}"
        )
    )
    wanted = 10 * wire_ns(100_000) + latency_ns(100_000)
    assert last_end_ns(recording) == pytest.approx(wanted, abs=EXACT)


@pytest.mark.parametrize("senders", [2, 7, 31])
def test_incast_shares_the_receivers_cable(senders: int) -> None:
    """Every sender gets 1/n."""
    entry = f"{{name: incast, pattern: incast, from: h2-h{senders + 1}, to: h1, size: 400KB}}"
    ends = ends_ns(by_flows(star_with(senders + 1, entry)))
    wanted = senders * wire_ns(400_000) + latency_ns(400_000)
    assert list(ends.values()) == [pytest.approx(wanted, abs=EXACT)] * senders


def test_what_a_short_flow_leaves_goes_to_the_others() -> None:
    """Two flows share until the shorter one ends; then the other has the link alone."""
    recording = by_flows(
        star_with(
            3,
            "{name: short, pattern: pair, from: h2, to: h1, size: 409600B}",
            "{name: long, pattern: pair, from: h3, to: h1, size: 1228800B}",
        )
    )
    ends = ends_ns(recording)
    short, long = wire_ns(409_600), wire_ns(1_228_800)
    assert ends["short"] == pytest.approx(2 * short + latency_ns(4096), abs=EXACT)
    assert ends["long"] == pytest.approx(short + long + latency_ns(4096), abs=EXACT)


def test_a_flow_held_elsewhere_leaves_its_part() -> None:
    """h2 sends to h1 and h5; three send to h1. Each gets a quarter of h1's cable, and the flow to
    h5 the three quarters of h2's cable that are left."""
    recording = by_flows(
        star_with(
            5,
            "{name: incast, pattern: incast, from: h2-h4, to: h1, size: 4096000B}",
            "{name: other, pattern: pair, from: h2, to: h5, size: 4096000B}",
        )
    )
    wanted = wire_ns(4_096_000) * 3 / 2 + latency_ns(4096)
    assert ends_ns(recording)["other"] == pytest.approx(wanted, abs=EXACT)


@pytest.mark.parametrize("switches", [3, 5])
def test_parking_lot_is_max_min_fair(switches: int) -> None:
    """A flow over all links of a line, and one over each link: the links are shared in halves, so
    the long flow is no worse off."""
    crossing = [
        f"{{name: s{n}, pattern: pair, from: h{n}, to: h{n + 1}, size: 4096000B}}"
        for n in range(1, switches)
    ]
    long = f"{{name: long, pattern: pair, from: h1, to: h{switches}, size: 4096000B}}"
    recording = by_flows(line(switches) + f"traffic: [{', '.join([*crossing, long])}]\n")
    rates = {flow.name: flow.goodput_bps / 1e9 for flow in recording.flows}
    half = 100 * 4096 / (4096 + 82) / 2
    assert rates["long"] == pytest.approx(half, rel=0.02)
    assert rates["s2"] == pytest.approx(half, rel=0.02)


@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
def test_ring_takes_its_steps_one_after_another(ranks: int) -> None:
    """2(n - 1)·(t(S/n) + a): exact, as pieces share their cables with acknowledgements alone."""
    piece = 16_384
    entry = f"{{name: sum, pattern: all-reduce, among: h1-h{ranks}, size: {piece * ranks}B}}"
    (job,) = by_flows(star_with(ranks, entry)).jobs
    steps = 2 * (ranks - 1)
    assert job.took_ns == pytest.approx(
        steps * (message_ns(piece) + acks_ns(piece)), abs=EXACT * steps
    )


def test_alltoall_fills_all_cables() -> None:
    """Each rank sends n - 1 pieces over its cable, all at once, and acknowledges as many."""
    entry = "{name: a, pattern: alltoall, among: h1-h8, size: 8MB}"
    (job,) = by_flows(star_with(8, entry)).jobs
    assert job.took_ns == pytest.approx(
        7 * (wire_ns(1_000_000) + acks_ns(1_000_000)) + latency_ns(4096), rel=1e-4
    )


def test_acknowledgements_take_room_and_are_not_held() -> None:
    """h1 sends to h9 although seven others fill the cable to h1. They have what h9's
    acknowledgements leave of it: f + a·o = 1, and h1 what its own acknowledgements leave:
    o + b·f = 1."""
    recording = by_flows(
        star_with(
            9,
            "{name: incast, pattern: incast, from: h2-h8, to: h1, size: 400KB}",
            "{name: out, pattern: pair, from: h1, to: h9, size: 409600000B}",
        ),
        "hosts.nic.ack_every=1",
    )
    ends, out = ends_ns(recording), 409_600_000
    a, b = (acks_ns(size, every=1) / wire_ns(size) for size in (out, 400_000))
    incast = 7 * wire_ns(400_000) * (1 - a * b) / (1 - a)
    last = max(end for flow, end in ends.items() if flow != "out")
    assert last == pytest.approx(incast + latency_ns(400_000), abs=EXACT)
    acknowledged = 7 * acks_ns(400_000, every=1)
    assert ends["out"] == pytest.approx(wire_ns(out) + acknowledged + latency_ns(4096), abs=EXACT)


def test_work_takes_its_time_and_messages_wait_for_it() -> None:
    """A training step alone takes the time of its work, and more with messages."""
    text = star_with(
        4,
        "{name: step, pattern: training-step, among: h1-h4, layers: 4, hidden: 512, "
        "sequence: 128, tensor: 2, tflops: 100}",
    )
    (step,) = by_flows(text).steps
    assert step.took_ns is not None
    assert step.exposed_ns is not None
    assert step.took_ns == step.work_alone_ns + step.exposed_ns
    assert step.exposed_ns > 0


def test_tolerance_bounds_the_delay() -> None:
    """With a tolerance, a message may be later, by that share of its time at most."""
    entry = "{name: a, pattern: all-to-all, among: h1-h64, size: 64KB}"
    text = "topology: {kind: fat-tree, k: 8}\n" + f"traffic: [{entry}]\n"
    exact, rough = (last_end_ns(by_flows(text, tolerance=share)) for share in (0.0, 1 / 256))
    assert exact <= rough <= exact * (1 + 1 / 256)
