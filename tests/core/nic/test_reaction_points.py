"""Each congestion control, compared with a second implementation that receives the same events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.core.nic import dctcp_model, swift_model
from tests.core.nic.dcqcn_model import Parameters, ReactionPoint
from tests.core.nic.nvidia_model import NvidiaReactionPoint, RoceCcEcn
from tests.core.self_tests import run

US = 1_000_000
"""A microsecond in picoseconds."""
LINE_RATE = 100_000_000_000

Event = tuple[Any, ...]
"""Time in picoseconds, name, and arguments."""

PARAMETERS = {
    "paper": Parameters(),
    "small byte counter": Parameters(byte_counter=150_000, rai=400e6, rhai=2e9),
    "slow gain, short timers": Parameters(g=1 / 16, alpha_timer=1 * US, increase_timer=9 * US),
    "no fast recovery": Parameters(fast_recovery=0, byte_counter=500_000, min_rate=10e9),
}

NVIDIA = {
    "ConnectX-6 Dx": RoceCcEcn(),
    "no byte counter": RoceCcEcn(rpg_byte_reset=0, rpg_time_reset=20 * US, rpg_hai_rate=2e9),
    "target always clamped": RoceCcEcn(clamp_tgt_rate=True, rpg_byte_reset=0),
    "not by time": RoceCcEcn(
        clamp_tgt_rate_after_time_inc=False, rpg_byte_reset=0, rpg_threshold=5
    ),
    "slower at first": RoceCcEcn(rate_to_set_on_first_cnp=60e9, rpg_max_rate=90e9, rpg_gd=10),
}

DCTCP = {
    "RFC 8257": dctcp_model.Parameters(),
    "quick gain, small window": dctcp_model.Parameters(g=1 / 2, initial_cwnd=2, max_cwnd=40),
}

SWIFT = {
    "htsim": swift_model.Parameters(),
    "short target, gentle": swift_model.Parameters(
        base_target=6e6, fs_range=12e6, ai=0.5, beta=0.3, max_mdf=0.2
    ),
    "no flow scaling, no less than a packet": swift_model.Parameters(fs_range=0, min_cwnd=1),
}


def _notified(random: Random) -> Iterator[Event]:
    """Events of a sender that receives CNPs in bursts, with long and short gaps between the
    bursts."""
    now = 0
    for _ in range(60):
        now += random.choice([60, 200, 5_000]) * US + random.randrange(US)
        for _ in range(random.randrange(1, 8)):
            now += random.randrange(1, 40 * US)
            yield now, "cnp"
        for _ in range(random.randrange(200)):
            now += random.randrange(1, 3 * US)
            yield now, "sent", 4178


def _acknowledged(random: Random) -> Iterator[Event]:
    """Events of a sender whose path is free and congested by turns; some packets are lost.

    Some ACKs cover several packets, some give no round trip.
    """
    now = 0
    for _ in range(80):
        congested = random.random() < 0.4
        for _ in range(random.randrange(1, 150)):
            now += random.randrange(1, (40 if congested else 2) * US)
            packets = random.choice([1, 1, 1, 4])
            in_flight = packets + random.choice([0, 3, 20, 600])
            marked = congested and random.random() < 0.7
            rtt = random.choice([0, 4, 5, 8]) * US + congested * random.randrange(1, 900 * US)
            yield now, "ack", packets, in_flight, marked, rtt
        if random.random() < 0.2:
            yield now, "lost"


def _expected(point: Any, events: Sequence[Event]) -> list[float]:
    """The state of the second implementation after each event."""
    states: list[float] = []
    for now, event, *rest in events:
        getattr(point, event)(now, *rest)
        states += point.state
    return states


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_dcqcn_matches_the_paper(programs: Path, parameters: Parameters) -> None:
    """Current and target rate after each CNP and packet equal those of a second implementation."""
    events = list(_notified(Random(3)))
    expected = _expected(ReactionPoint(parameters, LINE_RATE), events)
    assert _traced(programs, "dcqcn", parameters, events) == pytest.approx(expected, rel=1e-9)
    assert min(expected) < 50e9 < max(expected)


@pytest.mark.parametrize("parameters", NVIDIA.values(), ids=NVIDIA)
def test_nvidia_dcqcn_matches_its_parameters(programs: Path, parameters: RoceCcEcn) -> None:
    """Current and target rate of the NVIDIA variant equal those of a second implementation."""
    events = list(_notified(Random(4)))
    expected = _expected(NvidiaReactionPoint(parameters, LINE_RATE), events)
    traced = _traced(programs, "dcqcn-nvidia", parameters, events)
    assert traced == pytest.approx(expected, rel=1e-9)
    assert min(expected) < 50e9 < max(expected)


@pytest.mark.parametrize("parameters", DCTCP.values(), ids=DCTCP)
def test_dctcp_matches_its_rfc(programs: Path, parameters: dctcp_model.Parameters) -> None:
    """Window and alpha after each ACK and loss equal those of a second implementation."""
    events = list(_acknowledged(Random(5)))
    expected = _expected(dctcp_model.Sender(parameters), events)
    assert _traced(programs, "dctcp", parameters, events) == pytest.approx(expected, rel=1e-9)
    assert min(expected[::2]) < 3
    assert max(expected[::2]) > 20


@pytest.mark.parametrize("parameters", SWIFT.values(), ids=SWIFT)
def test_swift_matches_its_paper(programs: Path, parameters: swift_model.Parameters) -> None:
    """The window after each ACK and loss, in packets and fractions of one."""
    events = list(_acknowledged(Random(6)))
    expected = _expected(swift_model.Sender(parameters), events)
    assert _traced(programs, "swift", parameters, events) == pytest.approx(expected, rel=1e-9)
    assert min(expected) < max(parameters.min_cwnd * 1.1, 0.5)
    assert max(expected) > parameters.initial_cwnd


def _traced(
    programs: Path, algorithm: str, parameters: Any, events: Sequence[Event]
) -> list[float]:
    """All variables of the core's control after each event."""
    script = "\n".join(
        " ".join(str(int(w) if w is True or w is False else w) for w in event) for event in events
    )
    arguments = [f"{name}={float(value)!r}" for name, value in asdict(parameters).items()]
    printed = run(programs / "cc_trace", algorithm, str(LINE_RATE), *arguments, script=script)
    return [float(word) for line in printed.splitlines() for word in line.split()[:-2]]
