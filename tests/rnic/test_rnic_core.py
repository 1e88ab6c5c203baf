"""The RNIC core under sanitizers: self-tests in C, and DCQCN against a second implementation."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from random import Random

import pytest

from tests.rnic.core import SelfTest, run, self_tests
from tests.rnic.dcqcn_model import Parameters, ReactionPoint
from tests.rnic.nvidia_model import NvidiaReactionPoint, RoceCcEcn

US = 1_000_000
"""Picoseconds."""

PARAMETERS = {
    "paper": Parameters(),
    "small byte counter": Parameters(byte_counter=150_000, r_ai=400e6, r_hai=2e9),
    "slow gain, short timers": Parameters(g=1 / 16, alpha_timer=1 * US, increase_timer=9 * US),
    "no fast recovery": Parameters(fast_recovery=0, byte_counter=500_000, r_min=10e9),
}

NVIDIA = {
    "ConnectX-6 Dx": RoceCcEcn(),
    "no byte counter": RoceCcEcn(byte_reset=0, time_reset=20 * US, hai_rate=2e9),
    "target always clamped": RoceCcEcn(clamp_tgt_rate=True, byte_reset=0),
    "not by time": RoceCcEcn(clamp_tgt_rate_after_time_inc=False, byte_reset=0, threshold=5),
    "slower at first": RoceCcEcn(rate_to_set_on_first_cnp=60e9, max_rate=90e9, gd=10),
}


@pytest.mark.parametrize("test", self_tests(), ids=lambda test: test.name)
def test_core(programs: Path, test: SelfTest) -> None:
    """The behaviour that the self-test's name states, without a finding of ASan or UBSan."""
    run(programs / test.program, test.name)


def _script(random: Random) -> list[tuple[int, str, int]]:
    """Events of a sender that is notified in bursts, with long and short silences between them."""
    events: list[tuple[int, str, int]] = []
    now = 0
    for _ in range(60):
        now += random.choice([60, 200, 5_000]) * US + random.randrange(US)
        for _ in range(random.randrange(1, 8)):
            now += random.randrange(1, 40 * US)
            events.append((now, "cnp", 0))
        for _ in range(random.randrange(200)):
            now += random.randrange(1, 3 * US)
            events.append((now, "sent", 4178))
    return events


def _expected(
    point: ReactionPoint | NvidiaReactionPoint, events: list[tuple[int, str, int]]
) -> list[float]:
    rates: list[float] = []
    for now, event, size in events:
        if event == "cnp":
            point.cnp(now)
        else:
            point.sent(now, size)
        rates += point.rates
    return rates


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_dcqcn_follows_the_paper(programs: Path, parameters: Parameters) -> None:
    """Current and target rate after each CNP and packet are those of a second implementation."""
    events = _script(Random(3))
    rates = _traced(programs, "dcqcn", astuple(parameters), events)
    expected = _expected(ReactionPoint(parameters), events)
    assert rates == pytest.approx(expected, rel=1e-9)
    assert min(expected) < 50e9 < max(expected)


@pytest.mark.parametrize("parameters", NVIDIA.values(), ids=NVIDIA)
def test_nvidias_dcqcn_follows_its_parameters(programs: Path, parameters: RoceCcEcn) -> None:
    """The same for the other variant."""
    events = _script(Random(4))
    rates = _traced(programs, "dcqcn-nvidia", astuple(parameters), events)
    expected = _expected(NvidiaReactionPoint(parameters), events)
    assert rates == pytest.approx(expected, rel=1e-9)
    assert min(expected) < 50e9 < max(expected)


def _traced(
    programs: Path,
    algorithm: str,
    parameters: tuple[float, ...],
    events: list[tuple[int, str, int]],
) -> list[float]:
    lines = [f"{now} {event}{f' {size}' if size else ''}" for now, event, size in events]
    arguments = [repr(float(value)) if value % 1 else str(int(value)) for value in parameters]
    printed = run(programs / "cc_trace", algorithm, *arguments, script="\n".join(lines))
    return [float(word) for word in printed.split()]
