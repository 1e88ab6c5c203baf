"""Faults: each acts where and when the spec says, and counts every packet that it affects."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from math import sqrt
from struct import unpack_from

import pytest

from emu._core import lib
from emu.bindings.fabric import Fabric, FrameKind, NodeSubset
from emu.lab.fault_changes import change_faults
from emu.lab.ipc.queries import ClearFault, ListFaults, SetFault
from emu.runtime.virtual import VirtualFabric
from emu.spec.fault import Fault
from emu.subnet.subnet import Subnet
from emu.wire.crc import lpcrc
from tests.support.fault_runs import faults, records, run
from tests.support.frames import frames_of
from tests.support.small_fabrics import (
    INCAST,
    ONE_SWITCH,
    PAIR,
    Outcome,
    finish,
    outcome_of,
    outcome_so_far,
    shortest_paths,
    spec_of,
    star,
    started,
)
from topologies.graph import Port, Topology

MIDDLE = "left:right"
"""PAIR's cable between the switches; data leave switch left through this port."""
CUT = f"link-down: {{cable: {MIDDLE}}}"
BTH_IN_ROCE, BTH_IN_IB = 42, 8
HEADERS = {"roce": 58, "ib": 26}
"""Header and ICRC bytes of a data packet in the middle of a message."""
TAP_IN = 1
FRAMING = {"roce": 24, "ib": 0}
"""Bytes of preamble, FCS and gap."""


def on(fabric: str, *entries: str) -> tuple[str, ...]:
    """Settings of a fabric that is lossless on RoCE and InfiniBand alike, with these faults."""
    return (f"fabric={fabric}", "switches.pfc={xoff: 96KB}", faults(*entries))


def packets_through(outcome: Outcome, port: str) -> int:
    return sum(outcome.ports[port]["tx_packets"])


fabrics = pytest.mark.parametrize("fabric", ["roce", "ib"])


@fabrics
@pytest.mark.parametrize("every", [1, 7, 100])
def test_periodic_loss_drops_every_nth_packet(fabric: str, every: int) -> None:
    """The fault sees the packets that leave by the port, drops every n-th and no other, and the
    transport retransmits them."""
    fault = f"for: 100us, loss: {{cable: {MIDDLE}, direction: out, every: {every}}}"
    outcome, record = run(*on(fabric, fault))
    missing = packets_through(outcome, MIDDLE) - sum(outcome.ports["right:left"]["rx_packets"])
    assert record.hits == record.packets_dropped == record.packets_seen // every == missing > 0
    flow = outcome.flows["flow"]
    assert flow.completed
    assert flow.resent > 0


def test_random_loss_matches_its_probability() -> None:
    """Within four standard deviations of a binomial; another seed drops other packets."""
    fault = f"loss: {{cable: {MIDDLE}, direction: out, probability: 5%}}"
    hits = set()
    for seed in (1, 2, 3):
        _, record = run(*on("roce", fault), f"seed={seed}", "traffic.0.size=2MB")
        expected, n = 0.05 * record.packets_seen, record.packets_seen
        assert record.hits == pytest.approx(expected, abs=4 * sqrt(n * 0.05 * 0.95))
        hits.add((record.hits, record.packets_seen))
    assert len(hits) > 1


@fabrics
def test_listed_psn_is_lost_once(fabric: str) -> None:
    """The PSNs come from a capture without the fault; each retransmission passes."""
    psns = psns_of_capture(fabric)[3:6]
    fault = f"loss: {{cable: {MIDDLE}, direction: out, psn: {psns}}}"
    outcome, record = run(*on(fabric, fault))
    assert record.packets_dropped == 3
    assert outcome.flows["flow"].completed


def psns_of_capture(fabric: str) -> list[int]:
    bth = BTH_IN_ROCE if fabric == "roce" else BTH_IN_IB
    with started(spec_of(PAIR, f"fabric={fabric}", "capture=[h1:left]")) as fabric_run:
        fabric_run.run_until(20_000)
        frames = frames_of(fabric_run.fabric.captured())
    return [
        int.from_bytes(bytes_[bth + 9 : bth + 12], "big")
        for _, bytes_ in frames
        if len(bytes_) > 1000
    ]


@fabrics
@pytest.mark.parametrize("switching", ["store-and-forward", "cut-through"])
def test_damaged_packet_is_counted_and_discarded(fabric: str, switching: str) -> None:
    fault = f"for: 100us, corruption: {{cable: {MIDDLE}, direction: out, every: 10}}"
    outcome, record = run(*on(fabric, fault), f"switches.switching={switching}")
    assert (
        record.hits == record.packets_seen // 10 == outcome.ports["right:left"]["rx_crc_errors"][0]
    )
    noticed = outcome.total("corrupt") + outcome.hosts["h2"]["rx_crc_errors"]
    assert noticed == record.hits > 0
    assert outcome.flows["flow"].completed


@fabrics
def test_duplicated_packet_is_executed_once(fabric: str) -> None:
    fault = f"duplication: {{cable: {MIDDLE}, direction: out, every: 5}}"
    outcome, record = run(*on(fabric, fault))
    extra = sum(outcome.ports["right:left"]["rx_packets"]) - packets_through(outcome, MIDDLE)
    assert extra == record.hits > 0
    assert outcome.flows["flow"].completed


@pytest.mark.parametrize("buffer_kib", [20, 33, 64])
def test_duplicate_consumes_its_own_credit(buffer_kib: int) -> None:
    """So no packet that has credit finds the buffer full."""
    fault = "duplication: {cable: 's1:h2', every: 1}"
    lanes = ("fabric=ib", f"switches.credits.buffer={buffer_kib}KiB")
    outcome, record = run(*lanes, faults(fault), text=INCAST)
    assert record.hits > 0
    assert outcome.total("rx_credit_violations") == 0
    assert all(flow.completed for flow in outcome.flows.values())


@fabrics
def test_delayed_packet_is_overtaken(fabric: str) -> None:
    """The packet falls back by as many places as whole packets fit into the delay, and none is
    lost."""
    psn = psns_of_capture(fabric)[10]
    fault = f"reordering: {{cable: {MIDDLE}, direction: out, psn: [{psn}], by: 2us}}"
    with started(spec_of(PAIR, *on(fabric, fault), "capture=[h2:right]")) as fabric_run:
        finish(fabric_run)
        (record,) = records(fabric_run).values()
        bth = BTH_IN_ROCE if fabric == "roce" else BTH_IN_IB
        arrived = [
            int.from_bytes(bytes_[bth + 9 : bth + 12], "big")
            for _, bytes_ in frames_of(fabric_run.fabric.captured())
            if len(bytes_) > 1000
        ]
        outcome = outcome_so_far(fabric_run)
    assert (record.hits, record.packets_dropped) == (1, 0)
    packet_ps = (4096 + HEADERS[fabric] + FRAMING[fabric]) * 80
    assert arrived.index(psn) == 10 + 2_000_000 // packet_ps
    assert outcome.flows["flow"].completed


def test_credit_updates_do_not_overtake_held_packets() -> None:
    """FCTBS equals the 64-byte blocks that have arrived by then, also after late packets."""
    fault = "reordering: {cable: 'right:h2', direction: out, every: 10, by: 3us}"
    with started(spec_of(PAIR, *on("ib", fault), "capture=[h2:right]")) as fabric_run:
        fabric_run.run_until(60_000)
        (record,) = records(fabric_run).values()
        came, updates = 0, 0
        for bytes_ in arrivals(fabric_run.fabric.captured()):
            if len(bytes_) > 6:
                came += -(-len(bytes_) // 64)
            else:
                updates += 1
                assert int.from_bytes(bytes_[:2]) & 0xFFF == came % 4096
    assert record.hits > 10
    assert updates > 0


def arrivals(records: bytes) -> Iterator[bytes]:
    """Frames that the captured port received, in order (layout: tap.h)."""
    at = 0
    while at < len(records):
        stored, _, direction = unpack_from("<IBB", records, at + 24)
        if direction == TAP_IN:
            yield records[at + 32 : at + 32 + stored]
        at += 32 + -(-stored // 8) * 8


@fabrics
def test_delay_adds_to_the_cable_and_keeps_order(fabric: str) -> None:
    """A message with credit for all its packets takes longer by exactly the delay."""
    settings = ("switches.credits.buffer=128KiB", "traffic.0.size=64KiB")
    fault = f"delay: {{cable: {MIDDLE}, direction: out, by: 3us}}"
    plain = outcome_of(PAIR, f"fabric={fabric}", "switches.pfc={xoff: 96KB}", *settings)
    outcome, _ = run(*on(fabric, fault), *settings)
    late = outcome.end_ns("flow") - plain.end_ns("flow")
    assert late == 3_000
    assert outcome.flows["flow"].retransmitted_packets == 0


@fabrics
def test_end_of_a_delay_reorders_nothing(fabric: str) -> None:
    fault = f"for: 20us, delay: {{cable: {MIDDLE}, by: 7us}}"
    outcome, _ = run(*on(fabric, fault))
    assert outcome.hosts["h2"]["out_of_sequence"] == 0
    assert outcome.flows["flow"].completed


@fabrics
@pytest.mark.parametrize("cable", [MIDDLE, "left:h1", "right:h2"])
def test_link_down_stops_all_packets(fabric: str, cable: str) -> None:
    """Neither port of the cable receives a packet for 30 us; the transport recovers afterwards."""
    far = ":".join(reversed(cable.split(":")))
    spec = spec_of(PAIR, *on(fabric, f"at: 20us, for: 30us, link-down: {{cable: {cable}}}"))
    with started(spec) as fabric_run:
        fabric_run.run_until(20_000)
        before = {
            port: sum(outcome_so_far(fabric_run).ports[port]["rx_packets"]) for port in (cable, far)
        }
        fabric_run.run_until(50_000)
        after = {
            port: sum(outcome_so_far(fabric_run).ports[port]["rx_packets"]) for port in (cable, far)
        }
        assert before == after
        outcome = finish(fabric_run, within_ns=90_000_000)
        (record,) = records(fabric_run).values()
        fabric_run.run_until(fabric_run.now_ns + 1_000_000)
        left_behind = lib.fabric_frames_in_use(fabric_run.fabric.core)
    assert record.hits == 1
    assert record.packets_dropped == outcome.total("link_down_discard") > 0
    assert outcome.flows["flow"].completed
    assert left_behind <= 2 * fabric_run.spec.switch("left").credits.vls * 6  # credit updates


@fabrics
def test_flow_fails_whose_nic_has_no_link(fabric: str) -> None:
    """The NIC discards each attempt, and the retries end."""
    attempts, packets = 8, 245
    cut = "at: 5us, link-down: {cable: left:h1}"
    with started(spec_of(PAIR, *on(fabric, cut), "traffic.0.start=10us")) as fabric_run:
        outcome = finish(fabric_run, within_ns=900_000_000)
        (record,) = records(fabric_run).values()
        ended_ns = fabric_run.now_ns
    assert record.packets_dropped == attempts * packets
    assert outcome.flows["flow"].retransmitted_packets == (attempts - 1) * packets
    assert not outcome.flows["flow"].completed
    time_out_ns = 4096 << 14
    assert attempts * time_out_ns < ended_ns < (attempts + 1) * time_out_ns


@fabrics
@pytest.mark.parametrize("held", ["delay: {by: 20us, ", "reordering: {by: 20us, every: 2, "])
@pytest.mark.parametrize("lasts_us", [60, 41])
def test_link_down_drops_packets_that_a_fault_holds(fabric: str, held: str, lasts_us: int) -> None:
    """Packets held on the cable never arrive, and the credit accounting stays correct."""
    late = f"for: {lasts_us}us, {held}cable: {MIDDLE}}}"
    cut = f"at: 41us, for: 1us, link-down: {{cable: {MIDDLE}}}"

    def arrived(run: VirtualFabric) -> int:
        return sum(outcome_so_far(run).ports["right:left"]["rx_packets"])

    with started(spec_of(PAIR, *on(fabric, late, cut))) as run:
        run.run_until(41_000)
        before = arrived(run)
        run.run_until(42_000)
        assert arrived(run) == before
        outcome = finish(run, within_ns=90_000_000)
        assert records(run)["link-down-2"].packets_dropped > 0
    assert outcome.total("rx_credit_violations") == 0
    assert outcome.flows["flow"].completed


@pytest.mark.parametrize("first", ["delay", "reordering"])
def test_delay_with_reordering_grants_no_credit_twice(first: str) -> None:
    """In either order of the faults: a held packet counts either as in flight or as received."""
    at = {"delay": 10, "reordering": 10} | {first: 1}
    entries = (
        f"at: {at['delay']}us, delay: {{cable: {MIDDLE}, by: 2us}}",
        f"at: {at['reordering']}us, reordering: {{cable: {MIDDLE}, every: 2}}",
    )
    with started(spec_of(PAIR, *on("ib", *entries), "switches.credits.buffer=10KiB")) as fabric_run:
        outcome = finish(fabric_run, within_ns=90_000_000)
    assert outcome.total("rx_credit_violations") == 0
    assert outcome.flows["flow"].completed


def test_link_flap_takes_the_link_down_once_a_period() -> None:
    fault = f"at: 10us, for: 100us, link-flap: {{cable: {MIDDLE}, period: 30us, down: 5us}}"
    outcome, record = run(*on("roce", fault))
    assert record.hits == 4  # at 10, 40, 70 and 100 us
    assert outcome.ports[MIDDLE]["link_downed"] == [4]
    assert outcome.flows["flow"].completed


def test_overlapping_link_faults_hold_the_link_down() -> None:
    entries = (
        f"at: 10us, for: 30us, link-down: {{cable: {MIDDLE}}}",
        f"at: 20us, for: 40us, link-down: {{cable: {MIDDLE}}}",
    )
    with started(spec_of(PAIR, *on("roce", *entries))) as fabric_run:
        fabric_run.run_until(10_000)
        before = sum(outcome_so_far(fabric_run).ports["right:left"]["rx_packets"])
        fabric_run.run_until(60_000)
        outcome = outcome_so_far(fabric_run)
    assert sum(outcome.ports["right:left"]["rx_packets"]) == before
    assert outcome.ports[MIDDLE]["link_downed"] == [1]


def test_pause_storm_stops_its_leaf_for_its_duration() -> None:
    """The pause begins and ends one cable delay after the storm does."""
    fault = "at: 20us, for: 2ms, pause-storm: {host: h2, priority: 3}"
    outcome, record = run(*on("roce", fault))
    paused_ps = outcome.ports["right:h2"]["rx_pause_duration"][3]
    frame_ps = 84 * 80
    assert abs(paused_ps - 2_000_000_000) <= 2 * 4178 * 80 + frame_ps  # after a frame
    # Sent, refreshed at half of each pause of 65535 quanta of 5.12 ns, and ended.
    assert record.hits == 2_000_000 // (65535 // 2 * 5.12) + 1
    assert outcome.end_ns("flow") > 2_000_000
    assert outcome.total("rx_buf_discard") == 0


@fabrics
def test_slow_receiver_throttles_its_sender_without_loss(fabric: str) -> None:
    """Goodput is the receiver's rate less the headers; pauses or missing credit throttle the
    sender."""
    fault = "slow-receiver: {host: h2, rate: 20Gbit}"
    outcome, record = run(*on(fabric, fault), "traffic.0.size=4MB")
    flow = outcome.flows["flow"]
    assert flow.goodput_bps == pytest.approx(20e9 * 4096 / (4096 + HEADERS[fabric]), rel=0.02)
    assert flow.retransmitted_packets == record.packets_dropped == 0
    held_back = "rx_pause_duration" if fabric == "roce" else "xmit_wait"
    assert sum(outcome.ports["right:h2"][held_back]) > 0


def test_slow_receiver_without_flow_control_drops_packets() -> None:
    outcome, record = run(
        faults("slow-receiver: {host: h2, rate: 20Gbit, buffer: 50KB}"),
        "traffic.0.size=4MB",
        "hosts.nic.timeout=8",
    )
    assert record.packets_dropped > 0
    assert outcome.flows["flow"].completed
    assert record.packets_seen == sum(outcome.ports["h2:right"]["rx_packets"])


def test_recovered_slow_receiver_returns_to_full_speed() -> None:
    fault = "for: 50us, slow-receiver: {host: h2, rate: 5Gbit}"
    outcome, _ = run(*on("roce", fault))
    assert outcome.end_ns("flow") < 50_000 + 1_000_000 * 8 / 97 + 5_000
    assert outcome.ports["right:h2"]["rx_pause_transition"][3] >= 1


def test_faults_on_one_cable_combine() -> None:
    """All kinds at once on the receiver's cable: the bytes arrive as they were sent."""
    line = "cable: s1:h1"
    entries = (
        f"loss: {{{line}, probability: 1%}}",
        f"corruption: {{{line}, every: 97}}",
        f"duplication: {{{line}, every: 31}}",
        f"reordering: {{{line}, every: 61, by: 1us}}",
        f"at: 30us, for: 20us, delay: {{{line}, by: 1us}}",
        f"at: 60us, for: 40us, link-flap: {{{line}, period: 10us, down: 1us}}",
    )
    traffic = "traffic: [{name: in, pattern: incast, from: h2-h5, to: h1, op: write, size: 200KB}]"
    spec = spec_of(ONE_SWITCH + traffic, "switches.pfc={xoff: 96KB}", faults(*entries))
    with started(spec) as fabric_run:
        outcome = finish(fabric_run, within_ns=90_000_000)
        assert all(record.hits > 0 for record in records(fabric_run).values())
    assert all(flow.completed for flow in outcome.flows.values())


@fabrics
def test_fault_is_deterministic_and_inert_before_its_start(
    fabric: str,
) -> None:
    def digest(*settings: str) -> str:
        with started(spec_of(PAIR, f"fabric={fabric}", "capture=all", *settings)) as fabric_run:
            fabric_run.run_until(60_000)
            return hashlib.sha256(fabric_run.fabric.captured()).hexdigest()

    later = faults(f"at: 60us, loss: {{cable: {MIDDLE}, probability: 50%}}")
    now = faults(f"loss: {{cable: {MIDDLE}, probability: 50%}}")
    assert digest() == digest(later)
    assert digest() != digest(now) == digest(now)


def test_set_fault_begins_now_and_is_listed_with_its_state() -> None:
    """Its `at` has no effect; after its end the fault is listed until it is cleared."""
    cut = Fault.model_validate({"name": "cut", "for": "1us", "link-down": {"cable": MIDDLE}})
    with started(
        spec_of(PAIR, *on("roce", f"at: 60us, delay: {{cable: {MIDDLE}, by: 1us}}"))
    ) as run:

        def listed() -> list[tuple[str, str, int | None, int | None]]:
            faults = change_faults(run.fabric, ListFaults()).faults
            return [(one.name, one.state, one.at_ns, one.end_ns) for one in faults]

        later = "delay-1", "waiting", 60_000, None
        run.run_until(50_000)
        change_faults(run.fabric, SetFault("cut", cut.to_mapping()))
        assert listed() == [later, ("cut", "active", 50_000, 51_000)]
        run.run_until(50_999)
        assert listed() == [later, ("cut", "active", 50_000, 51_000)]
        run.run_until(51_000)
        assert listed() == [later, ("cut", "over", 50_000, 51_000)]
        assert records(run)["cut"].hits == 1
        change_faults(run.fabric, ClearFault("cut"))
        assert listed() == [later]


PACKET_BYTES = 1026


class RemoteHost:
    """A host in another process: its port sends packets as far as it has credit."""

    def __init__(self, fabric: Fabric, own: Port, packet: bytes) -> None:
        self.packets = 0
        self._fabric, self._own, self._packet = fabric, own, packet
        self._blocks = -(-len(packet) // 64)
        self._fccl: int | None = None

    def take_limit(self, update: bytes) -> None:
        """Takes the credit limit from a flow-control packet of the switch."""
        self._fccl = int.from_bytes(update[2:4]) & 0xFFF

    def send(self) -> None:
        """Sends all packets that the credit allows, then reports the total in a flow-control
        packet."""
        while self._fccl is not None and (self._fccl - self._after(1)) % 4096 <= 2048:
            assert self._fabric.inject(self._own, FrameKind.IB, self._packet)
            self.packets += 1
        self.send_update(self._after(0), 0)

    def send_update(self, fctbs: int, fccl: int) -> None:
        """Sends a flow-control packet for VL 0."""
        update = (fctbs % 4096).to_bytes(2) + (fccl % 4096).to_bytes(2)
        assert self._fabric.inject(self._own, FrameKind.IB_LINK, update + lpcrc(update))

    def _after(self, packets: int) -> int:
        return (self.packets + packets) * self._blocks


class RemoteFlow:
    """h2 sends to h1 through a switch in another process; h1 grants credit at random."""

    def __init__(self, *settings: str, ahead: int = 0) -> None:
        """`ahead`: packets for which h1 has room at first."""
        spec = spec_of(star(2), "fabric=ib", *settings)
        topology = spec.topology.build()
        subnet = shortest_paths(topology)
        h1, h2 = (topology.ports[name][0] for name in ("h1", "h2"))
        lids = (subnet.lids["h1"].to_bytes(2), subnet.lids["h2"].to_bytes(2))
        packet = (b"\0\2" + lids[0] + b"\1\0" + lids[1]).ljust(PACKET_BYTES, b"\0")
        with Fabric(spec, topology, NodeSubset.SWITCHES, subnet=subnet) as fabric:
            fabric.connect()
            fabric.capture([topology.peer[h2]])
            fabric.start()
            sender, receiver = RemoteHost(fabric, h2, packet), RemoteHost(fabric, h1, packet)
            rng, granted = random.Random(spec.seed), ahead
            left = []
            for step in range(600):
                lib.fabric_run(fabric.core, (step + 1) * 1_000_000)
                for update in updates_from_switch(fabric):
                    sender.take_limit(update)
                if step < 500:
                    sender.send()
                self.into, self.out = (fabric.counters(topology.peer[port]) for port in (h2, h1))
                self.duplicated = fabric.faults[0].record().hits
                left.append(granted - sum(self.out["tx_packets"]) - self.duplicated)
                granted += rng.choice([0, 0, 0, 1, 2, 3]) if step < 500 else 2
                receiver.send_update(0, granted * -(-PACKET_BYTES // 64))
            self.sent = sender.packets
            self.least_credit = min(left)
            """The least number of packets that h1's credit still allowed at any time, copies
            included."""


@pytest.mark.parametrize("buffer_kib", [5, 8, 20])
def test_duplicates_from_another_process_fit_the_buffer(buffer_kib: int) -> None:
    """h2's credit is unknown to the switch's process, so the switch reserves room for the copies
    itself.

    The buffer is empty, full, and everything between. In the end the switch has sent h1 as many
    packets as were sent and duplicated.
    """
    fault = faults("duplication: {cable: 'h2:s1', direction: out, every: 3}")
    seen = RemoteFlow(fault, f"switches.credits.buffer={buffer_kib}KiB")
    assert sum(seen.into["rx_credit_violations"]) == 0
    assert seen.duplicated > seen.sent / 6
    assert sum(seen.out["tx_packets"]) == seen.sent + seen.duplicated


@pytest.mark.parametrize("holds", ["delay: {by: 3us, ", "reordering: {by: 3us, every: 2, "])
@pytest.mark.parametrize("began_us", [0, 2])
def test_duplicates_queue_behind_held_packets(holds: str, began_us: int) -> None:
    """In either order of the faults: no credit update goes out between a copy and its room."""
    cable = "cable: 'h2:s1', direction: out"
    double = f"at: 1us, duplication: {{{cable}, every: 3}}"
    hold = f"at: {began_us}us, {holds}{cable}}}"
    seen = RemoteFlow(faults(double, hold), "switches.credits.buffer=20KiB")
    assert seen.duplicated > 10
    assert sum(seen.into["rx_credit_violations"]) == 0


def test_duplicates_to_another_process_need_credit() -> None:
    """The credit that h1 granted covers all packets that reach it, duplicates included."""
    seen = RemoteFlow(faults("duplication: {cable: 's1:h1', direction: out, every: 2}"), ahead=40)
    assert seen.duplicated > 10
    assert seen.least_credit == 0
    assert sum(seen.out["tx_packets"]) == seen.sent


def updates_from_switch(fabric: Fabric) -> list[bytes]:
    """New flow-control packets of the switch: those of the host have an FCTBS or no credit."""
    return [
        bytes_
        for kind, bytes_ in frames_of(fabric.captured())
        if kind is FrameKind.IB_LINK and not any(bytes_[:2]) and any(bytes_[2:4])
    ]


DATA_PRIORITY = {"roce": 3, "ib": 0}


def data_packet(fabric: str, topology: Topology, subnet: Subnet) -> bytes:
    """A packet from h1 to h2 on the priority of data."""
    if fabric == "ib":
        lids = (subnet.lids[host].to_bytes(2) for host in ("h2", "h1"))
        return (b"\0\2" + b"\1\0".join(lids)).ljust(PACKET_BYTES, b"\0")
    to = (10 << 24 | topology.addresses["h2"]).to_bytes(4)
    ip = bytes([0x45, 26 << 2, *bytes(6), 64, 17, *bytes(6)]) + to
    return (bytes(12) + b"\x08\0" + ip).ljust(PACKET_BYTES, b"\0")


@fabrics
@pytest.mark.parametrize("fault", ["loss: {cable: 'h1:s1', every: 2}", "link-down: {cable: h1:s1}"])
def test_loss_from_a_host_in_another_process_is_counted(fabric: str, fault: str) -> None:
    """The switch counts it in the same class as if the host were in its process."""
    spec = spec_of(star(2), f"fabric={fabric}", faults(f"at: 1us, {fault}"))
    topology = spec.topology.build()
    subnet = shortest_paths(topology)
    h1 = topology.port_named["h1:s1"]
    packet = data_packet(fabric, topology, subnet)
    with Fabric(spec, topology, NodeSubset.SWITCHES, subnet=subnet) as fabric_run:
        fabric_run.connect()
        fabric_run.start()
        lib.fabric_run(fabric_run.core, 900_000)
        for _ in range(4):
            assert fabric_run.inject(h1, FrameKind(fabric == "ib"), packet)
        lib.fabric_run(fabric_run.core, 9_000_000)
        seen = fabric_run.observe()
    (record,) = seen.faults
    dropped = [own["dropped"][DATA_PRIORITY[fabric]] for own in seen.ports.values()]
    assert sum(dropped) == record.packets_dropped == (4 if "down" in fault else 2)
    lost_with_link = sum(own["link_down_discard"][0] for own in seen.ports.values())
    assert lost_with_link == (4 if "down" in fault else 0)


def test_raw_packet_does_not_match_a_listed_psn() -> None:
    """The raw packet has the listed number where other InfiniBand packets have their PSN."""
    fault = f"loss: {{cable: {MIDDLE}, direction: out, psn: [5]}}"
    with started(spec_of(PAIR, *on("ib", fault), "traffic=[]")) as run:
        at = run.topology.port_named[MIDDLE]
        raw = bytes(17) + (5).to_bytes(3) + bytes(40)
        assert run.fabric.inject(at, FrameKind.IB, raw)
        run.run_until(10_000)
        (record,) = records(run).values()
    assert (record.packets_seen, record.hits) == (1, 0)
