"""Misconfiguration faults: a setting changes while the fault lasts, and is restored afterwards."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import pairwise

import pytest

from emu.runtime.virtual import VirtualFabric
from tests.support.classified_packet import packet, received_on
from tests.support.fault_runs import faults, records
from tests.support.small_fabrics import (
    INCAST,
    ONE_SWITCH,
    PAIR,
    finish,
    outcome_so_far,
    port,
    spec_of,
    started,
)

PACKET_BYTES = 4154
"""Bytes in a buffer of a packet in the middle of a message, with 4096 of payload."""
PACKET_NS = (PACKET_BYTES + 24) * 8 / 100
"""Its time on a cable of 100 Gb/s."""
FOUR_PORTS = [f"s1:h{n}" for n in range(2, 6)]
"""The ports that receive INCAST's packets."""


def count(run: VirtualFabric, ports: list[str], counter: str, priority: int) -> int:
    return sum(outcome_so_far(run).ports[name][counter][priority] for name in ports)


def in_windows(
    text: str, times_us: list[int], measure: Callable[[VirtualFabric], int], *settings: str
) -> list[int]:
    """The growth of a count within each interval that ends at one of these times."""
    with started(spec_of(text, *settings)) as run:
        counts = [0]
        for time_us in times_us:
            run.run_until(time_us * 1000)
            counts.append(measure(run))
    return [after - before for before, after in pairwise(counts)]


# ---- all misconfigurations --------------------------------------------------------

KINDS = {
    "wrong-map": "wrong-map: {switch: s1, dscp: {26: 0, 48: 1}}",
    "small-headroom": "small-headroom: {switch: s1, headroom: 5KB}",
    "wrong-ecn": "wrong-ecn: {switch: s1, kmin: 1MB, kmax: 1500KB, pmax: 1%}",
    "ignored-cnps": "ignored-cnps: {host: h2}",
}
TUNED = (
    "switches.pfc={xoff: 96KB}",
    "switches.ecn={queues: {3: {kmin: 20KB}}}",
    "hosts.nic.cc=dcqcn",
)


def digest(*settings: str) -> str:
    """Hash of all frames captured in INCAST's first 150 us."""
    with started(spec_of(INCAST, *TUNED, "capture=all", *settings)) as run:
        run.run_until(150_000)
        return hashlib.sha256(run.fabric.captured()).hexdigest()


@pytest.mark.parametrize("kind", KINDS)
def test_setting_is_restored_after_the_fault(kind: str) -> None:
    """A fault that ends before the first packet changes no captured byte; one that lasts does."""
    assert digest(faults(f"for: 500ns, {KINDS[kind]}")) == digest()
    assert digest(faults(KINDS[kind])) != digest()


@pytest.mark.parametrize("kind", KINDS)
def test_consecutive_faults_restore_the_setting(kind: str) -> None:
    """The second fault begins in the instant in which the first ends."""
    both = faults(f"for: 200ns, {KINDS[kind]}", f"at: 200ns, for: 300ns, {KINDS[kind]}")
    assert digest(both) == digest()


def test_consecutive_slow_receivers_restore_the_host() -> None:
    slow = "slow-receiver: {host: h1, rate: 1Gbit}"
    both = faults(f"for: 200ns, {slow}", f"at: 200ns, for: 300ns, {slow}")
    assert digest(both) == digest()


@pytest.mark.parametrize("kind", KINDS)
def test_variant_on_another_fabric_drops_the_fault(kind: str) -> None:
    """The InfiniBand variant inherits a RoCE fault and ignores it."""
    compare = "compare={ib: {fabric: ib}, roce: {}}"
    variants = spec_of(INCAST, *TUNED, faults(KINDS[kind]), compare).variants()
    for name, there in (("ib", []), ("roce", [f"{kind}-1"])):
        with started(variants[name]) as run:
            assert list(records(run)) == there


def test_variant_with_the_wrong_setting_keeps_the_fault() -> None:
    """The variant serves for comparison with the fault."""
    always = (
        "classes: {dscp: {26: 0, 48: 1}}, pfc: {headroom: 5KB}, "
        "ecn: {kmin: 1MB, kmax: 1500KB, pmax: 1%, queues: {3: {kmin: 1MB}}}"
    )
    wrong = faults(*(KINDS[kind] for kind in ("wrong-map", "small-headroom", "wrong-ecn")))
    compare = f"compare={{always: {{switches: {{{always}}}}}}}"
    with started(spec_of(INCAST, *TUNED, wrong, compare).variants()["always"]) as run:
        assert finish(run).flows


def test_variant_without_the_setting_drops_the_fault() -> None:
    compare = "compare={plain: {switches: {pfc: off, ecn: off}, hosts: {nic: {cc: none}}}}"
    wrong = faults(*(KINDS[kind] for kind in ("small-headroom", "wrong-ecn", "ignored-cnps")))
    plain = spec_of(INCAST, *TUNED, wrong, compare).variants()["plain"]
    with started(plain) as run:
        assert records(run) == {}


# ---- a wrong map ----------------------------------------------------------------------


def test_wrong_map_moves_packets_to_the_wrong_priority() -> None:
    """The packets that arrive during the fault change priority; earlier and later ones do not."""
    fault = "at: 20us, for: 20us, wrong-map: {port: 'right:left', dscp: {26: 0}}"
    with started(spec_of(PAIR, "switches.pfc={xoff: 96KB}", faults(fault))) as run:
        outcome = finish(run)
        record = records(run)["wrong-map-1"]
    into, out = outcome.ports["right:left"], outcome.ports["right:h2"]
    assert into["rx_packets"][0] == pytest.approx(20_000 / PACKET_NS, abs=1)
    assert record.hits == record.packets_seen == into["rx_packets"][0] == out["tx_packets"][0]
    assert sum(into["rx_packets"]) == sum(outcome.ports["left:right"]["tx_packets"])
    assert outcome.ports["left:right"]["tx_packets"][0] == 0
    assert outcome.flows["flow"].completed


@pytest.mark.parametrize(
    ("trusted", "fault", "dscp", "pcp"),
    [
        ("dscp", "dscp: {26: 5}", 26, None),
        ("dscp", "dscp: {26: 5}", 26, 4),
        ("pcp", "pcp: {4: 5}", 26, 4),
    ],
)
def test_wrong_map_changes_only_the_given_code_points(
    trusted: str, fault: str, dscp: int, pcp: int | None
) -> None:
    """For the trusted field, and only until the fault ends."""
    window = faults(f"at: 20us, for: 40us, wrong-map: {{switch: left, {fault}}}")
    settings = "traffic=[]", f"switches.classes.trust={trusted}", window
    with started(spec_of(PAIR, *settings)) as run:
        right = received_on(run, packet(dscp, pcp))
        run.run_until(20_000)
        assert received_on(run, packet(dscp, pcp)) == 5 != right
        assert received_on(run, packet(10, 1)) == 1
        run.run_until(60_000)
        assert received_on(run, packet(dscp, pcp)) == right
        record = records(run)["wrong-map-1"]
        assert (record.packets_seen, record.hits) == (2, 1)


def test_wrong_map_pauses_a_priority_without_senders() -> None:
    """The switch maps priority 3 to 4, both lossless: senders never stop, headroom overflows."""
    fault = "at: 40us, for: 40us, wrong-map: {switch: s1, dscp: {26: 4}}"
    settings = "switches.pfc={priorities: [3, 4], xoff: 96KB}", "switches.buffer=4MB", faults(fault)

    def grown(counter: str, priority: int) -> list[int]:
        return in_windows(
            INCAST, [40, 80, 300], lambda r: count(r, FOUR_PORTS, counter, priority), *settings
        )

    paused_3, paused_4 = grown("tx_pause", 3), grown("tx_pause", 4)
    assert paused_3[0] > 0 == paused_4[0]
    assert paused_4[1] > 0
    assert grown("rx_buf_discard", 3)[:2] == [0, 0]
    dropped = grown("rx_buf_discard", 4)
    assert dropped[1] > 0 == dropped[0]
    assert dropped[2] == 0


def test_queued_packets_are_released_where_charged() -> None:
    """With a full buffer both when the map becomes wrong and when it is restored."""
    fault = "at: 40us, for: 40us, wrong-map: {switch: s1, dscp: {26: 0}}"
    with started(spec_of(INCAST, "switches.pfc={xoff: 96KB}", faults(fault))) as run:

        def held(priority: int) -> int:
            return sum(run.fabric.held(port(run, name), priority) for name in FOUR_PORTS)

        run.run_until(40_000)
        lossless = held(3)
        assert lossless > 4 * 50_000
        run.run_until(40_000 + 5_000)
        assert held(3) == pytest.approx(lossless - 5_000 / PACKET_NS * PACKET_BYTES, rel=0.1)
        run.run_until(80_000)
        assert held(0) > 20 * PACKET_BYTES
        outcome = finish(run)
        assert [held(priority) for priority in range(8)] == [0] * 8
    assert all(flow.completed for flow in outcome.flows.values())


# ---- small headroom -------------------------------------------------------------------

STORM = "at: 20us, for: 80us, pause-storm: {host: h2, priority: 3}"
AFTER_THE_PAUSE = 5
"""Packets that PAIR's middle cable delivers from the one that crosses XOFF on: the pause frame
reaches left after 507 ns, left begins no packet afterwards, and the packets that it began before
take 834 ns. The last of the five began 503 ns after the first had arrived."""


@pytest.mark.parametrize("room", [1, 2, 3, 4, 5])
def test_small_headroom_drops_the_packets_beyond_it(
    room: int,
) -> None:
    headroom = room * PACKET_BYTES + 100
    fault = f"at: 10us, for: 90us, small-headroom: {{port: 'right:left', headroom: {headroom}}}"
    with started(spec_of(PAIR, "switches.pfc={xoff: 96KB}", faults(STORM, fault))) as run:
        run.run_until(99_000)
        record = records(run)["small-headroom-2"]
        into = outcome_so_far(run).ports["right:left"]
        assert record.hits == into["rx_buf_discard"][3] == AFTER_THE_PAUSE - room
        assert record.packets_seen > record.hits
        assert into["headroom_peak_bytes"][3] == room * PACKET_BYTES
        outcome = finish(run, within_ns=90_000_000)
    assert outcome.flows["flow"].completed
    assert outcome.total("rx_buf_discard") == AFTER_THE_PAUSE - room


def test_small_headroom_drops_only_while_it_lasts() -> None:
    """At a switch that pauses its four senders again and again."""
    fault = "at: 40us, for: 40us, small-headroom: {switch: s1, fraction: 25%}"
    lost = in_windows(
        INCAST,
        [40, 80, 200],
        lambda run: count(run, FOUR_PORTS, "rx_buf_discard", 3),
        "switches.pfc={xoff: 96KB}",
        faults(fault),
    )
    assert lost[1] > 0
    assert [lost[0], lost[2]] == [0, 0]


# ---- wrong ECN -----------------------------------------------------------------------

STEP = "kmin: 20KB, kmax: 20KB"
"""Every packet that finds a deeper queue is marked."""


@pytest.mark.parametrize("ecn", [f"{{{STEP}}}", f"{{{STEP}, at: dequeue}}"])
def test_wrong_ecn_stops_marks_while_kmin_is_above_xoff(ecn: str) -> None:
    """PFC acts meanwhile. Before and after, the queue is never empty and all packets are marked."""
    settings = (
        "switches.pfc={xoff: 96KB}",
        f"switches.ecn={ecn}",
        faults("at: 30us, for: 30us, wrong-ecn: {port: 's1:h1', kmin: 1MB, kmax: 1500KB}"),
    )

    def grown(counter: str, ports: list[str]) -> list[int]:
        return in_windows(INCAST, [30, 60, 90], lambda r: count(r, ports, counter, 3), *settings)

    marked, sent = grown("ecn_marked", ["s1:h1"]), grown("tx_packets", ["s1:h1"])
    joined = sent if "dequeue" in ecn else grown("rx_packets", FOUR_PORTS)
    assert marked[0] > 0 == marked[1]
    assert marked[2] == pytest.approx(joined[2], abs=8)
    assert grown("tx_pause", FOUR_PORTS)[1] > 0
    with started(spec_of(INCAST, *settings)) as run:
        run.run_until(90_000)
        record = records(run)["wrong-ecn-1"]
        assert (record.hits, record.packets_seen) == (0, sent[1])


def test_wrong_ecn_keeps_the_keys_it_does_not_set() -> None:
    """With kmin alone, queue 3 keeps its own kmax: packets above it are still marked."""
    ecn = "{kmin: 20KB, kmax: 2MB, pmax: 0, queues: {3: {kmax: 40KB}}}"
    fault = faults("wrong-ecn: {switch: s1, kmin: 40KB}")
    settings = "switches.pfc={xoff: 96KB}", f"switches.ecn={ecn}", "switches.buffer=4MB", fault

    def grown(counter: str, ports: list[str]) -> list[int]:
        return in_windows(INCAST, [30, 90], lambda r: count(r, ports, counter, 3), *settings)

    assert grown("ecn_marked", ["s1:h1"])[1] == pytest.approx(
        grown("rx_packets", FOUR_PORTS)[1], abs=8
    )


def test_wrong_ecn_leaves_unmarked_queues_unmarked() -> None:
    ecn = f"{{{STEP}, queues: {{3: off}}}}"
    fault = faults("wrong-ecn: {switch: s1, kmin: 1KB, kmax: 1KB}")
    with started(spec_of(INCAST, "switches.pfc={xoff: 96KB}", f"switches.ecn={ecn}", fault)) as run:
        assert finish(run).total("ecn_marked") == 0


# ---- ignored CNPs --------------------------------------------------------------------

THREE = (
    ONE_SWITCH + "traffic: [{name: three, pattern: incast, from: h2-h4, to: h1, op: write, "
    "size: 4MB}]\n"
)
MARKING = ("switches.ecn={kmin: 5KB, kmax: 200KB}", "switches.buffer=16MB")


@pytest.mark.parametrize("cc", ["dcqcn", "dcqcn-nvidia", "cct"])
def test_senders_that_ignore_cnps_return_to_line_rate(cc: str) -> None:
    """Until the fault ends. Two of three senders ignore CNPs, so the queue grows."""
    window = "at: 200us, for: 50us, ignored-cnps"
    both = faults(f"{window}: {{host: h2}}", f"{window}: {{host: h3}}")
    settings = (*MARKING, f"hosts.nic.cc={cc}", both)
    times = [150, 201, 249, 300, 350]
    line = 48_000 / PACKET_NS

    def sent(run: VirtualFabric) -> int:
        return sum(outcome_so_far(run).ports["s1:h2"]["rx_packets"])

    def cnps_handled(run: VirtualFabric) -> int:
        return outcome_so_far(run).hosts["h2"]["rp_cnp_handled"]

    rates = in_windows(THREE, times, sent, *settings)
    cnps = in_windows(THREE, times, cnps_handled, *settings)
    assert rates[1] < 0.8 * line
    assert rates[2] == pytest.approx(line, abs=1)
    assert rates[4] < 0.8 * line
    assert cnps[2] == 0 < cnps[3]
    with started(spec_of(THREE, *settings)) as run:
        run.run_until(400_000)
        record, hosts = records(run)["ignored-cnps-1"], outcome_so_far(run).hosts
        assert record.hits == record.packets_seen == hosts["h2"]["rp_cnp_ignored"] > 0
        assert hosts["h4"]["rp_cnp_ignored"] == 0
