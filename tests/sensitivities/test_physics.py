"""What changes do in a fabric, against closed formulas and conservation laws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import emu
from emu.measure.recording import Recording
from emu.runtime import runner_of
from emu.sensitivities.change import Change
from emu.sensitivities.changes import changes_of
from emu.sensitivities.pinned import pinned
from emu.sensitivities.places import places_of
from emu.spec import scenario
from emu.spec.from_code import with_values


def run(own: scenario.Spec, folder: Path) -> Recording:
    return runner_of("packets", "virtual").run(own, out=folder)


def took_ns(recording: Recording) -> int:
    return max(flow.end_ns or 0 for flow in recording.flows)


def sent(recording: Recording) -> dict[str, int]:
    return {name: counters["tx_wire_bytes"] for name, counters in recording.ports.items()}


def change(own: scenario.Spec, before: Recording, name: str) -> Change:
    found = changes_of(own, places_of(own, sent(before), [took_ns(before)]))
    return next(change for change in found.made if change.name == name)


def changed(own: scenario.Spec, before: Recording, name: str) -> scenario.Spec:
    return with_values(own, change(own, before, name).settings, source="test")


def incast(**keys: Any) -> scenario.Spec:
    own: dict[str, Any] = {
        "topology": {"kind": "leaf-spine", "spines": 2, "leaves": 2, "hosts_per_leaf": 4},
        "switches": {"buffer": "3MB", "pfc": {}, "ecn": {}},
        "hosts": {"nic": {"cc": "dcqcn"}},
        "traffic": [
            {"name": "in", "pattern": "incast", "from": "h2-h8", "to": "h1", "size": "1MB"}
        ],
        "payload": "elided",
    }
    return emu.Spec(**{**own, **keys})


@pytest.mark.parametrize(
    "own",
    [
        incast(),
        incast(switches={"buffer": "3MB", "pfc": {"xoff": "150KB"}, "ecn": {}}),
        incast(switches={"preset": "sonic", "nodes": {"leaf2": {"ecn": {"kmin": "10KB"}}}}),
    ],
    ids=["alpha", "bytes", "preset and node"],
)
def test_a_fabric_with_pinned_thresholds_is_the_same(own: scenario.Spec, tmp_path: Path) -> None:
    before, after = run(own, tmp_path), run(pinned(own), tmp_path)
    assert [flow.end_ns for flow in after.flows] == [flow.end_ns for flow in before.flows]
    assert after.ports == before.ports


def test_small_headroom_drops_packets_that_are_sent_again(tmp_path: Path) -> None:
    own = pinned(incast())
    before = run(own, tmp_path)
    assert before.totals["drops_lossless"] == 0
    after = run(changed(own, before, "small headroom"), tmp_path)
    assert after.totals["drops_lossless"] > 0
    assert after.totals["retransmitted_packets"] >= after.totals["drops_lossless"]


def test_ignored_cnps_let_the_sender_go_on_at_line_rate(tmp_path: Path) -> None:
    own = pinned(incast())
    before = run(own, tmp_path)
    ignoring = change(own, before, "CNPs ignored")
    host = ignoring.settings["faults"][-1]["ignored-cnps"]["host"]
    after = run(changed(own, before, "CNPs ignored"), tmp_path)
    assert before.hosts[host]["rp_cnp_handled"] > 0
    assert after.hosts[host]["rp_cnp_handled"] == 0


def test_a_wrong_map_puts_the_data_on_a_lossy_priority(tmp_path: Path) -> None:
    own = pinned(incast())
    before = run(own, tmp_path)
    after = run(changed(own, before, "wrong DSCP map"), tmp_path)
    assert before.totals["drops_lossy"] == 0
    assert after.totals["drops_lossy"] > 0


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_one_of_two_spines_down_halves_the_bisection(fabric: str, tmp_path: Path) -> None:
    """Four hosts send to four others over two uplinks of 100 Gbit/s, packet by packet over both.
    With one of them it takes twice as long; the times differ by the few microseconds of a path."""
    own = pinned(
        incast(
            fabric=fabric,
            switches={"buffer": "64MB", "routing": {"kind": "spray"}},
            hosts={"nic": {"cc": "none", "recovery": "selective-repeat", "reordering": 4096}},
            traffic=[
                {"name": f"x{n}", "pattern": "pair", "from": f"h{n}", "to": f"h{n + 4}"}
                | {"size": "4MB"}
                for n in range(1, 5)
            ],
        )
    )
    before = run(own, tmp_path)
    after = run(changed(own, before, "link down"), tmp_path)
    assert after.totals["drops_fault"] == 0
    assert took_ns(after) / took_ns(before) == pytest.approx(2, rel=0.03)


@pytest.mark.parametrize("buffer_bytes", [65_536, 32_768])
def test_halved_credits_lower_the_rate_to_credits_over_the_round_trip(
    buffer_bytes: int, tmp_path: Path
) -> None:
    """The credits of a lane hold so many packets, and come back after the cable's round trip and a
    packet's time. Below the bandwidth-delay product, 125 KB here, that is the rate. 3 %: the first
    and the last round, and the time between credit updates."""
    delay_ns, rate_bps, mtu, size = 5_000, 100e9, 4096, 16_000_000
    own = pinned(
        incast(
            fabric="ib",
            topology={
                "kind": "leaf-spine",
                "spines": 1,
                "leaves": 1,
                "hosts_per_leaf": 2,
                "links": {"host": {"rate": "100Gbit", "delay": f"{delay_ns}ns"}},
            },
            switches={"credits": {"buffer": f"{buffer_bytes}B"}},
            hosts={"nic": {"cc": "none"}},
            traffic=[
                {"name": "a", "pattern": "pair", "from": "h1", "to": "h2", "size": f"{size}B"}
            ],
        )
    )
    before = run(own, tmp_path)
    for recording, credit in (
        (before, buffer_bytes),
        (run(changed(own, before, "switches.credits.buffer x 1/2"), tmp_path), buffer_bytes // 2),
    ):
        on_wire = mtu + 26  # LRH, BTH, ICRC, VCRC
        packets = credit // (-(-on_wire // 64) * 64)
        loop_ns = 2 * delay_ns + on_wire * 8 / rate_bps * 1e9
        expected_bps = packets * mtu * 8 / loop_ns * 1e9
        assert size * 8 / took_ns(recording) * 1e9 == pytest.approx(expected_bps, rel=0.03)


def test_a_slow_receiver_halves_the_rate_of_an_incast(tmp_path: Path) -> None:
    """The receiver takes 50 of 100 Gbit/s. 10 %: the NIC's own buffer takes 100 KB at once, and
    rates need time to fall."""
    own = pinned(incast(hosts={"nic": {"cc": "none"}}, switches={"buffer": "3MB", "pfc": {}}))
    before = run(own, tmp_path)
    after = run(changed(own, before, "slow receiver"), tmp_path)
    assert took_ns(after) / took_ns(before) == pytest.approx(2, rel=0.1)
