"""Virtual lanes: who sends next, which lane a packet takes, and what becomes of one that waits."""

from __future__ import annotations

import pickle
from itertools import pairwise
from struct import unpack_from

import pytest

from emu._core import lib
from emu.bindings.fabric import FrameKind
from emu.ib_rates import parse_ib_rate
from emu.runtime.virtual import VirtualFabric
from emu.spec.model import spec_from_text
from emu.wire.crc import vcrc
from tests.support.frames import frames_of
from tests.support.small_fabrics import ONE_SWITCH, PAIR, port, shortest_paths, spec_of, started

IB = ("fabric=ib", "switches.credits.vls=8", "switches.credits.buffer=64KiB")


def senders(*levels: int, size: str = "4MB") -> str:
    """h2, h3, ... send to h1, each on a service level of its own."""
    entries = "".join(
        f"  - {{name: sl{sl}, pattern: pair, from: h{n}, to: h1, op: write, size: {size}, "
        f"priority: {sl}}}\n"
        for n, sl in enumerate(levels, start=2)
    )
    return f"{ONE_SWITCH}traffic:\n{entries}"


def delivered(text: str, *settings: str, at_ns: int) -> list[int]:
    """Bytes of each flow that have arrived by then."""
    spec = spec_of(text, *settings)
    with started(spec) as run:
        run.run_until(at_ns)
        count = len(spec.workload().flows)
        return [int(run.endpoints.flow_bytes[flow]) for flow in range(count)]


def arbitration(high: str, low: str, limit: int) -> str:
    return f"subnet.vl_arbitration={{high: {high}, low: {low}, high_limit: {limit}}}"


@pytest.mark.parametrize(("one", "other"), [(65, 65), (65, 195), (130, 195), (65, 255)])
def test_lanes_of_one_list_share_the_link_by_their_weights(one: int, other: int) -> None:
    """65 units of 64 bytes are one packet of 4122 bytes; a turn ends with the packet it overran."""
    table = arbitration("{}", f"{{0: {one}, 1: {other}}}", 0)
    packets = [-(-weight * 64 // 4122) for weight in (one, other)]
    got = delivered(senders(0, 1), *IB, table, at_ns=300_000)
    assert got[0] / got[1] == pytest.approx(packets[0] / packets[1], rel=0.05)


@pytest.mark.parametrize("limit", [0, 2, 10])
def test_high_lanes_let_a_low_packet_go_when_they_reach_their_limit(limit: int) -> None:
    """So many packets of the high lane go for each one of the low lane."""
    table = arbitration("{0: 255}", "{1: 255}", limit)
    packets = max(1, -(-limit * 4096 // 4122))
    got = delivered(senders(0, 1), *IB, table, at_ns=300_000)
    assert got[0] / got[1] == pytest.approx(packets, rel=0.05)


def test_high_lanes_without_a_limit_leave_nothing_to_low_ones() -> None:
    """255 stands for no limit: until the high lane is done, the low one has what it had before."""
    got = delivered(senders(0, 1), *IB, arbitration("{0: 1}", "{1: 255}", 255), at_ns=300_000)
    assert got[0] > 40 * got[1]


def test_a_service_level_takes_the_lane_of_the_port_it_leaves_by() -> None:
    """SL 1 rides on VL 1 to a switch with two lanes, then on VL 0; its VCRC stays right."""
    text = PAIR + "capture: [left:h1, right:h2]\n"
    settings = (
        "fabric=ib",
        "switches.nodes={left: {credits: {vls: 2}}}",
        "traffic.0.priority=1",
        "traffic.0.size=20KB",
    )
    with started(spec_of(text, *settings)) as run:
        run.run_until(50_000)
        assert run.finished
        data = [frame for kind, frame in frames_of(run.fabric.captured()) if kind == 1]
    lanes = {(frame[0] >> 4, frame[1] >> 4) for frame in data}
    assert lanes == {(1, 1), (0, 1)}
    assert all(vcrc(frame[:-2]) == frame[-2:] for frame in data)


def test_a_service_level_without_a_lane_is_dropped_and_counted() -> None:
    """SL2VL says VL15, which carries management alone."""
    with started(spec_of(PAIR, "fabric=ib", "switches.credits.vls=2")) as run:
        run.run_until(1_000)
        sl2vl = [0] * 16
        sl2vl[0] = 15
        left = run.topology.ports["left"]
        lib.fabric_set_sl2vl(run.fabric.core, run.fabric.index[port(run, "left:right")], sl2vl)
        run.run_until(100_000)
        counted = [run.fabric.counters(own)["no_lane"][0] for own in left]
        assert not run.finished
    assert sum(counted) > 10


def discards_of_a_lane_without_credit(*settings: str, until_ns: int) -> int:
    """At the port to h2, which never has room for a packet; other ports wait for ever."""
    spec = spec_of(
        PAIR,
        "fabric=ib",
        "switches.latency=600ns",
        "subnet.head_of_queue_lifetime=31",
        "subnet.leaf_head_of_queue_lifetime=2",
        *settings,
    )
    topology = spec.topology.build()
    with VirtualFabric(spec, topology, shortest_paths(topology)) as run:
        full = run.fabric.index[topology.ports["h2"][0]]
        lib.fabric_set_lane_buffer(run.fabric.core, full, 0, 0)
        run.start()
        run.run_until(until_ns)
        return run.fabric.counters(port(run, "right:h2"))["hoq_discard"][0]


@pytest.mark.parametrize("until_ns", [20_000, 40_000, 200_000])
def test_a_packet_without_credit_lives_for_its_time_at_the_head_of_its_lane(until_ns: int) -> None:
    """4.096 us * 2^2 = 16.384 us each; the first one is there after 2.7 us."""
    discards = discards_of_a_lane_without_credit("subnet.vl_stall_count=0", until_ns=until_ns)
    assert discards == (until_ns - 2_700) // 16_384


def test_packets_that_die_in_a_row_stall_their_lane() -> None:
    """Two lifetimes, then all the lane holds at once: its buffer has room for 15 packets."""
    before = discards_of_a_lane_without_credit("subnet.vl_stall_count=2", until_ns=35_000)
    after = discards_of_a_lane_without_credit("subnet.vl_stall_count=2", until_ns=36_000)
    assert before == 1
    assert after >= 15


def test_lifetimes_above_19_are_endless() -> None:
    """However long it takes."""
    settings = ("subnet.leaf_head_of_queue_lifetime=20",)
    assert discards_of_a_lane_without_credit(*settings, until_ns=5_000_000) == 0


def updates_of(records: bytes) -> dict[tuple[int, int, int], list[int]]:
    """When flow-control packets passed, in ps, by port, direction and VL (layout: tap.h)."""
    times: dict[tuple[int, int, int], list[int]] = {}
    at = 0
    while at < len(records):
        at_ps, _, index, _, stored, kind, direction = unpack_from("<qQIIIBB", records, at)
        if kind == FrameKind.IB_LINK:
            vl = records[at + 32 + 2] >> 4
            times.setdefault((index, direction, vl), []).append(at_ps)
        at += 32 + -(-stored // 8) * 8
    return times


@pytest.mark.parametrize(
    ("rate", "lane_gbit"),
    [("1x SDR", 2), ("1x NDR", 100), ("2x HDR", 50), ("4x EDR", 25), ("12x NDR", 100)],
)
def test_every_vl_is_told_of_in_65536_symbol_times_of_a_lane(rate: str, lane_gbit: int) -> None:
    """A symbol is 8 bits of data, however many lanes carry others at the same time."""
    limit_ps = 65_536 * 8 * 1000 // lane_gbit
    text = PAIR.replace("delay: 500ns", f"rate: {rate}, delay: 500ns") + "capture: [left:h1]\n"
    with started(spec_of(text, "fabric=ib", "switches.credits.vls=4")) as run:
        run.run_until(10 * limit_ps // 1000)
        updates = updates_of(run.fabric.captured())
    assert len(updates) == 2 * 4  # either way
    for times in updates.values():
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert len(gaps) >= 9
        assert max(gaps) <= limit_ps


def test_a_width_is_not_lost_on_the_way_to_a_lab() -> None:
    """A lab gets its spec as JSON and hands back what it saw, pickled; links of one rate and
    other widths are others."""
    widths = {}
    for rate in ("100Gbit", "4x EDR", "2x HDR", "1x NDR", "25Gbit", "30Gbit"):
        spec = spec_of(PAIR, f"topology.links.host.rate={rate}", "fabric=ib")
        again = spec_from_text(spec.to_json().encode(), source="again")
        assert again.topology == spec.topology
        (cable, *_) = pickle.loads(pickle.dumps(again.topology.build().cables))
        widths[rate] = cable.width
    plain = {"100Gbit": 4, "25Gbit": 1, "30Gbit": 4}
    assert widths == plain | {"4x EDR": 4, "2x HDR": 2, "1x NDR": 1}


def test_rates_have_infinibands_names() -> None:
    """Four lanes of a generation carry what its data sheets say."""
    rates = {"SDR": 8, "DDR": 16, "QDR": 32, "FDR10": 40, "EDR": 100, "HDR": 200, "NDR": 400}
    for name, gbit in (rates | {"XDR": 800}).items():
        assert parse_ib_rate(f"4x {name}") == gbit * 10**9
    assert parse_ib_rate("1x NDR") != parse_ib_rate("4x EDR")
    assert parse_ib_rate("4x FDR") == pytest.approx(54.545e9, rel=1e-4)
    text = b"topology: {kind: dumbbell, hosts_per_side: 1, links: {host: {rate: 2x xdr}}}"
    spec = spec_from_text(text, source="rates")
    cable = spec.topology.build().cables[0]
    assert int(cable.rate_bps) == 400 * 10**9
    assert cable.width == 2
