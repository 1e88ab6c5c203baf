"""The arithmetic of fidelity: buckets, percentiles, and the causes of an inconclusive verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from emu.measure.fidelity import bucket_value, fidelity_of, percentile
from emu.measure.observation import Observation
from emu.measure.records import Fidelity
from emu.measure.timeline import EMPTY_TIMELINE, Timeline
from tests.support.observations import WAYS_TO_BE_LATE, bucket_of, histogram, observation

BUDGET_NS = 335
HEADROOM_NS = 2000
SLOWDOWN = 1000.0


def verdict(
    *observations: Observation,
    timeline: Timeline = EMPTY_TIMELINE,
    transit_lost: int = 0,
    dropped_by_faults: int = 0,
) -> Fidelity:
    return fidelity_of(
        observations,
        timeline,
        slowdown=SLOWDOWN,
        budget_ns=BUDGET_NS,
        headroom_ns=HEADROOM_NS,
        transit_lost=transit_lost,
        dropped_by_faults=dropped_by_faults,
    )


@pytest.mark.parametrize("value", [0, 1, 15, 16, 31, 32, 1000, 123_456, 10**9])
def test_bucket_is_accurate_to_a_sixteenth(value: int) -> None:
    """The bounds of the bucket enclose the value closely."""
    bucket = bucket_of(value)
    assert bucket_value(bucket) <= value < bucket_value(bucket + 1)
    assert bucket_value(bucket + 1) - bucket_value(bucket) <= max(1, value // 16 + 1)


def test_percentile_is_never_too_low() -> None:
    """It is the upper end of its bucket."""
    late = histogram(*range(1000))
    assert 989 <= percentile(late, 0.99) <= 989 * 17 / 16
    assert percentile(late, 1.0) >= 999
    assert percentile(histogram(), 0.99) == 0


def test_punctual_frames_make_a_run_conclusive() -> None:
    """99 of 100 within the budget, in emulated time."""
    within = observation(histogram(*[200_000] * 99, 50_000_000))
    assert verdict(within).verdict == "ok"
    assert verdict(within).late_max_ns >= 50_000


@pytest.mark.parametrize("way", WAYS_TO_BE_LATE)
def test_two_percent_of_late_frames_make_it_inconclusive(way: str) -> None:
    late = observation(histogram(*[200_000] * 98, 700_000, 700_000), way)
    found = verdict(late)
    assert found.verdict == "inconclusive"
    assert "try slowdown:" in found.reasons[0]


@pytest.mark.parametrize("fault", ["send_failures", "receive_drops", "overtaken", "exhausted"])
def test_lost_or_reordered_frame_makes_it_inconclusive(fault: str) -> None:
    """Whether the kernel, a socket's buffer or the emulator's own memory lost it."""
    faults: dict[str, Any] = {fault: 3}
    found = verdict(observation(histogram(1), **faults))
    assert found.verdict == "inconclusive"
    assert "3" in found.reasons[0]


def test_packet_lost_in_open_vswitch_makes_it_inconclusive() -> None:
    found = verdict(observation(histogram(1)), transit_lost=2)
    assert found.reasons == ("Open vSwitch lost 2 packets; try a larger slowdown",)


def timeline_of(late_ns: list[int], dropped: list[int]) -> Timeline:
    """Values by interval of 1 us; lateness is in emulated time."""
    none = np.zeros(len(late_ns), np.int64)
    late = 1000 * np.array(late_ns, np.int64)
    return Timeline(1_000_000, late, none, np.zeros((len(none), 4), np.int64), np.array(dropped))


@pytest.mark.parametrize(
    ("late_ns", "dropped"),
    [
        ([0, 340, 0, 0, 0, 0], [0, 5, 0, 0, 0, 0]),
        ([0, 340, 0, 0, 0, 0], [0, 2, 1, 2, 0, 0]),
        ([0, 1_000, 0, 0, 0, 0], [0, 0, 0, 0, 0, 5]),
    ],
)
def test_drops_soon_after_late_frames_are_inconclusive(
    late_ns: list[int], dropped: list[int]
) -> None:
    """During the lateness, for as long again, and until the headroom of 2 us is full."""
    found = verdict(observation(histogram(1)), timeline=timeline_of(late_ns, dropped))
    assert found.verdict == "inconclusive"
    assert "5 lossless packets were dropped" in found.reasons[0]


def test_drops_by_a_fault_stay_conclusive() -> None:
    """As many as the fault counts; one more is inconclusive."""
    seen = timeline_of([0, 340, 0, 0, 0, 0], [0, 5, 0, 0, 0, 0])
    verdicts = (
        verdict(observation(histogram(1)), timeline=seen, dropped_by_faults=by_faults).verdict
        for by_faults in (5, 4)
    )
    assert list(verdicts) == ["ok", "inconclusive"]


@pytest.mark.parametrize(
    ("late_ns", "dropped"),
    [
        ([0, 340, 0, 0, 0, 0], [1, 4, 0, 0, 0, 0]),
        ([0, 340, 0, 0, 0, 0], [0, 0, 0, 0, 0, 5]),
        ([0, 330, 0, 0, 0, 0], [0, 5, 0, 0, 0, 0]),
        ([0, 340, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]),
    ],
)
def test_drops_without_a_late_frame_are_conclusive(late_ns: list[int], dropped: list[int]) -> None:
    """A drop before, long after or without a late frame shows that the fabric itself drops."""
    found = verdict(observation(histogram(1)), timeline=timeline_of(late_ns, dropped))
    assert found.verdict == "ok"


def test_open_vswitch_delay_is_in_emulated_time() -> None:
    """The delay is part of a switch's latency, so it makes no run inconclusive by itself."""
    seen = observation(histogram(1))
    assert seen.timing is not None
    kept = replace(seen.timing, plane_kept=histogram(*[300_000] * 99, 9_000_000))
    found = verdict(replace(seen, timing=kept))
    assert found.verdict == "ok"
    assert found.ovs_kept_p99_ns == pytest.approx(300, rel=1 / 16)
    assert found.ovs_kept_max_ns == pytest.approx(9_000, rel=1 / 16)


def test_suggested_slowdown_is_bounded() -> None:
    """One long hiccup says little about the machine's capacity."""
    found = verdict(observation(histogram(*[10**9] * 50)))
    assert "try slowdown: 4000 or more," in found.reasons[0]
