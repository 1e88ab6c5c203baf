"""Each case passes on the reference fabric, and fails on one that is mis-tuned for it."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from emu.plans.bench import Bench, bench_of
from emu.plans.case import Case, Verdict
from emu.plans.plan import plan_named
from emu.plans.pytest_items import REFERENCE
from emu.plans.requirements import requirements_of
from emu.spec.load import load_spec

PLANS = ("sonic-lossless", "sonic-lossy", "sonic-ecn", "sonic-pfcwd")
CASES = {case.id: case for plan in PLANS for case in plan_named(plan).cases}
REQUIRED = (
    "lossless=3,4",
    "kmin=400KB",
    "kmax=1200KB",
    "pmax=20%",
    "detection=2ms",
    "restoration=2ms",
)
"""What the reference fabric's settings say."""


class MisTuned(NamedTuple):
    """A mistake, as `--set`, and the part of the measurement that shows it."""

    settings: tuple[str, ...]
    shown: str


TO_RECEIVER = "switches.nodes.leaf1.ports.h4"
PFC_OFF = (f"{TO_RECEIVER}.pfc=off",)
SMALL_HEADROOM = ("topology.links.host.length=300m", "switches.pfc.headroom=5KB")
"""The headroom of a short cable, and a long one."""
ONE_QUEUE = (
    "switches.classes.queue={0: 3, 1: 3, 2: 3, 4: 3, 5: 3, 6: 3, 7: 3}",
    "switches.ecn={kmin: 400KB, kmax: 1200KB, pmax: 20%}",
    "switches.ecn.queues={}",
)
PAUSES_OF_LINKS = ("switches.pfc.frames=pause",)
PFC_ON_LOSSY = ("switches.pfc.priorities=[0, 3, 4]", "switches.buffer=40MB")
ECN_ABOVE_XOFF = ("switches.ecn.queues.3={kmin: 10MB, kmax: 12MB}",)
SLOW_WATCHDOG = ("switches.watchdog.detection=20ms",)
HASTY_WATCHDOG = ("switches.watchdog.detection=500us",)

MIS_TUNED = {
    "L01": MisTuned(PFC_OFF, "3 received 500 packets"),
    "L02": MisTuned((f"{TO_RECEIVER}.pfc.priorities=[3]",), "3 and 4 received 500 packets"),
    "L03": MisTuned(PFC_OFF, "3 received"),
    "L05": MisTuned(("switches.nodes.leaf1.ports.h3.pfc.priorities=[4]",), "of 4 ports received"),
    "L06": MisTuned(SMALL_HEADROOM, "lost"),
    "L07": MisTuned(PFC_OFF, "3 received"),
    "L08": MisTuned(SMALL_HEADROOM, "lost"),
    "L09": MisTuned(ECN_ABOVE_XOFF, "first CE never, first pause at"),
    "L10": MisTuned(SLOW_WATCHDOG, "0 of 4 stuck ports found in time"),
    "L11": MisTuned(PFC_OFF, "3 received"),
    "L12": MisTuned(HASTY_WATCHDOG, "storms reported"),
    "L13": MisTuned(SLOW_WATCHDOG, "no storm was found"),
    "L15": MisTuned(PFC_OFF, "0 obeyed"),
    "Y01": MisTuned(PAUSES_OF_LINKS, "has 0.0% of its rate"),
    "Y02": MisTuned(PFC_ON_LOSSY, "ps of pause of lossy priorities"),
    "Y04": MisTuned(PFC_ON_LOSSY, "TxPfc[0]"),
    "E01": MisTuned(("switches.ecn.queues.3.kmin=100KB",), "of 3277 packets marked"),
    "E02": MisTuned(("switches.ecn.queues.3.pmax=30%",), "expected"),
    "E03": MisTuned(("switches.ecn.queues.3.kmax=1500KB",), "of 50 packets above kmax marked"),
    "E04": MisTuned(ECN_ABOVE_XOFF, "first CE never, first pause at"),
    "E05": MisTuned(ONE_QUEUE, "of all others"),
    "W01": MisTuned(SLOW_WATCHDOG, "no storm was found"),
    "W02": MisTuned(PFC_OFF, "no storm was found"),
    "W03": MisTuned(PFC_OFF, "no storm was found"),
    "W04": MisTuned(("switches.watchdog.restoration=20ms",), "the queue was not restored"),
    "W05": MisTuned(HASTY_WATCHDOG, "storms reported"),
}
MORE = (
    ("L01", MisTuned(SMALL_HEADROOM, "lost")),
    ("L01", MisTuned(ONE_QUEUE, "has 0.0% of its rate")),
    ("L01", MisTuned(("switches.classes={other_dscp: 3}",), "no DSCP")),
    ("L13", MisTuned(("switches.watchdog.restoration=20ms",), "the queue was not restored")),
)
ALWAYS_SKIPPED = {"L14"}


def _bench(*settings: str) -> Bench:
    return bench_of(load_spec(REFERENCE, settings), requirements_of(REQUIRED), "reference")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_reference_fabric_passes(case: Case) -> None:
    """Every case passes, but for those that no emulated switch can have."""
    result = case.run(_bench())
    expected = Verdict.SKIPPED if case.id in ALWAYS_SKIPPED else Verdict.PASSED
    assert result.verdict == expected.value, result.measured


@pytest.mark.parametrize(("name", "mistake"), [*MIS_TUNED.items(), *MORE])
def test_mis_tuned_fabric_fails(name: str, mistake: MisTuned) -> None:
    """Every case fails on the fabric with its mistake, and for that reason: it comes first."""
    result = CASES[name].run(_bench(*mistake.settings))
    assert result.verdict == Verdict.FAILED.value, result.measured
    assert mistake.shown in result.measured.partition(";")[0]


def test_short_of_memory_is_inconclusive() -> None:
    """Ten megabytes of the smallest frames in one queue are more frames than the emulator has."""
    result = CASES["L07"].run(_bench(*ONE_QUEUE))
    assert result.verdict == Verdict.INCONCLUSIVE.value
    assert "no room in the emulator's memory" in result.measured


def test_every_case_has_a_mistake() -> None:
    assert MIS_TUNED.keys() | ALWAYS_SKIPPED == CASES.keys()


def test_runs_repeat() -> None:
    """The same fabric gives the same measurement."""
    first, second = (CASES["L08"].run(_bench()) for _ in range(2))
    assert first == second
