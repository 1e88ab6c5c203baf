"""Virtual lanes: arbitration, the choice of lane, and packets without credit."""

from __future__ import annotations

import pickle
from itertools import pairwise
from struct import unpack_from

import pytest

from emu.bindings.fabric import FrameKind
from emu.ib_rates import parse_ib_rate
from emu.spec.model import spec_from_text
from emu.wire.crc import vcrc
from tests.support.frames import frames_of
from tests.support.small_fabrics import ONE_SWITCH, PAIR, port, spec_of, started

IB = ("fabric=ib", "switches.credits.vls=8", "switches.credits.buffer=64KiB")


def senders(*levels: int, size: str = "4MB") -> str:
    """Flows from h2, h3, ... to h1, each on its own service level."""
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
def test_lanes_share_the_link_by_weight(one: int, other: int) -> None:
    """65 units of 64 bytes are one packet of 4122 bytes; a turn ends with the packet that exceeds
    it."""
    table = arbitration("{}", f"{{0: {one}, 1: {other}}}", 0)
    packets = [-(-weight * 64 // 4122) for weight in (one, other)]
    got = delivered(senders(0, 1), *IB, table, at_ns=300_000)
    assert got[0] / got[1] == pytest.approx(packets[0] / packets[1], rel=0.05)


@pytest.mark.parametrize("limit", [0, 2, 10])
def test_high_priority_limit_lets_a_low_packet_pass(limit: int) -> None:
    """That many packets of the high lane pass for each packet of the low lane."""
    table = arbitration("{0: 255}", "{1: 255}", limit)
    packets = max(1, -(-limit * 4096 // 4122))
    got = delivered(senders(0, 1), *IB, table, at_ns=300_000)
    assert got[0] / got[1] == pytest.approx(packets, rel=0.05)


def test_unlimited_high_priority_starves_low_lanes() -> None:
    """255 means no limit: until the high lane is done, the low lane sends nothing more."""
    got = delivered(senders(0, 1), *IB, arbitration("{0: 1}", "{1: 255}", 255), at_ns=300_000)
    assert got[0] > 40 * got[1]


def test_sl2vl_of_the_egress_port_selects_the_lane() -> None:
    """SL 1 travels on VL 1 to a switch with two lanes, then on VL 0; its VCRC stays valid."""
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


def test_service_level_without_a_lane_is_dropped() -> None:
    """SL2VL maps it to VL15, which carries only management, and the drop is counted."""
    unused_sl, sl2vl = 9, [0] * 16
    sl2vl[unused_sl] = 15
    text = PAIR + "capture: [left:h1]\n"
    with started(spec_of(text, "fabric=ib", f"subnet.sl2vl={sl2vl}")) as run:
        run.run_until(5_000)
        data = next(frame for kind, frame in frames_of(run.fabric.captured()) if kind == 1)
        packet = bytes([data[0], unused_sl << 4 | data[1] & 0x0F]) + data[2:-2]
        run.inject("h1:left", packet + vcrc(packet))
        run.run_until(50_000)
        counted = [run.fabric.counters(own)["no_lane"][0] for own in run.topology.ports["left"]]
    assert sum(counted) == 1


def discards_of_a_lane_without_credit(*settings: str, until_ns: int) -> int:
    """Discards at the port to h2, whose credit updates are all lost; at other ports packets have
    no lifetime limit."""
    spec = spec_of(
        PAIR,
        "fabric=ib",
        "traffic.0.size=4MB",
        "switches.latency=600ns",
        "subnet.head_of_queue_lifetime=31",
        "subnet.leaf_head_of_queue_lifetime=2",
        "faults=[{flow-control: {cable: h2:right, probability: 1}}]",
        *settings,
    )
    with started(spec) as run:
        run.run_until(until_ns)
        return run.fabric.counters(port(run, "right:h2"))["hoq_discard"][0]


@pytest.mark.parametrize("until_ns", [20_000, 40_000, 200_000, 4_400_000])
def test_head_of_queue_lifetime_drops_waiting_packets(until_ns: int) -> None:
    """The lifetime is 4.096 us * 2^2 = 16.384 us; the first packet arrives after 2.7 us. The last
    case has more than 256 discards in a row, which never stall the lane."""
    discards = discards_of_a_lane_without_credit("subnet.vl_stall_count=0", until_ns=until_ns)
    assert discards == (until_ns - 2_700) // 16_384


def test_consecutive_lifetime_drops_stall_the_lane() -> None:
    """After two lifetimes the lane drops all it holds: its buffer has room for 15 packets."""
    before = discards_of_a_lane_without_credit("subnet.vl_stall_count=2", until_ns=35_000)
    after = discards_of_a_lane_without_credit("subnet.vl_stall_count=2", until_ns=36_000)
    assert before == 1
    assert after >= 15


def test_lifetimes_above_19_are_infinite() -> None:
    """A packet without credit stays however long it waits."""
    settings = ("subnet.leaf_head_of_queue_lifetime=20",)
    assert discards_of_a_lane_without_credit(*settings, until_ns=5_000_000) == 0


def updates_of(records: bytes) -> dict[tuple[int, int, int], list[int]]:
    """Times of flow-control packets in ps, by port, direction and VL (layout: tap.h)."""
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
def test_each_lane_is_updated_every_65536_symbol_times(rate: str, lane_gbit: int) -> None:
    """A symbol is 8 bits of data; the updates of other lanes do not change the interval."""
    limit_ps = 65_536 * 8 * 1000 // lane_gbit
    text = PAIR.replace("delay: 500ns", f"rate: {rate}, delay: 500ns") + "capture: [left:h1]\n"
    with started(spec_of(text, "fabric=ib", "switches.credits.vls=4")) as run:
        run.run_until(10 * limit_ps // 1000)
        updates = updates_of(run.fabric.captured())
    assert len(updates) == 2 * 4  # in both directions
    for times in updates.values():
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert len(gaps) >= 9
        assert max(gaps) <= limit_ps


def test_link_width_survives_the_transfer_to_a_lab() -> None:
    """A lab receives its spec as JSON and returns pickled results. Links of equal rate and
    different width differ."""
    widths = {}
    for rate in ("100Gbit", "4x EDR", "2x HDR", "1x NDR", "25Gbit", "30Gbit"):
        spec = spec_of(PAIR, f"topology.links.host.rate={rate}", "fabric=ib")
        again = spec_from_text(spec.to_json().encode(), source="again")
        assert again.topology == spec.topology
        (cable, *_) = pickle.loads(pickle.dumps(again.topology.build().cables))
        widths[rate] = cable.width
    plain = {"100Gbit": 4, "25Gbit": 1, "30Gbit": 4}
    assert widths == plain | {"4x EDR": 4, "2x HDR": 2, "1x NDR": 1}


def test_rates_have_infiniband_names() -> None:
    """Four lanes of each generation have the rate of its data sheets."""
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
