"""Invariants of every run: packets are conserved, and the same seed gives the same run."""

from __future__ import annotations

import hashlib
import os
import random

import pytest

from emu._core import lib
from emu.bindings.fabric import FrameKind
from tests.support.frames import frames_of
from tests.support.small_fabrics import INCAST, PAIR, Outcome, finish, outcome_of, spec_of, started

FUZZ_FRAMES = int(os.environ.get("EMU_FUZZ_FRAMES", "20000"))
LOSSY = ("switches.buffer=300KB", "hosts.nic.timeout=8")


def drops(outcome: Outcome) -> int:
    reasons = ("rx_buf_discard", "tx_queue_discard", "no_route", "ttl_expired", "not_ip", "corrupt")
    return sum(outcome.total(reason) for reason in reasons)


@pytest.mark.parametrize("settings", [LOSSY, ("switches.pfc={xoff: 96KB}",), ("fabric=ib",)])
def test_packets_are_received_or_dropped_exactly_once(
    settings: tuple[str, ...],
) -> None:
    """Conservation over a whole incast, with and without loss."""
    outcome = outcome_of(INCAST, *settings)
    hosts = outcome.hosts.values()
    sent = sum(host["tx_packets"] for host in hosts)
    received = sum(host["rx_packets"] for host in hosts)
    assert sent == received + drops(outcome)
    assert (drops(outcome) > 0) == (settings is LOSSY)
    assert all(flow.completed for flow in outcome.flows.values())


def test_all_frames_return_to_the_pool() -> None:
    """At the end no frame of a lossy incast is in use."""
    with started(spec_of(INCAST, *LOSSY)) as run:
        finish(run)
        run.run_until(run.now_ns + 1_000_000)
        assert lib.fabric_frames_in_use(run.fabric.core) == 0


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_same_seed_gives_the_same_capture(fabric: str) -> None:
    """Another seed gives another capture."""
    capture = "capture: [s1:h1]\n"

    def digest(seed: int) -> str:
        spec = spec_of(
            INCAST + capture, f"fabric={fabric}", f"seed={seed}", "switches.buffer=300KB"
        )
        with started(spec) as run:
            finish(run)
            return hashlib.sha256(run.fabric.captured()).hexdigest()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize("target", ["h2:right", "right:h2"])
def test_arbitrary_frames_crash_no_switch_or_nic(fabric: str, target: str) -> None:
    """Random bytes, and packets of the run with some bytes changed."""
    rng = random.Random(1)
    settings = (f"fabric={fabric}", "switches.pfc={xoff: 96KB}" if fabric == "roce" else "seed=1")
    with started(spec_of(PAIR + "capture: all\n", *settings)) as run:
        run.run_until(30_000)
        seen = frames_of(run.fabric.captured())
        at = run.topology.port_named[target]
        kinds = [FrameKind.ETHERNET] if fabric == "roce" else [FrameKind.IB, FrameKind.IB_LINK]
        taken = 0
        for n in range(FUZZ_FRAMES // 4):
            kind, frame = mutated(rng, seen, kinds)
            taken += run.fabric.inject(at, kind, frame)
            if n % 16 == 0:
                run.run_until(run.now_ns + 16 * 350)  # the serialisation time of the largest frames
        run.run_until(run.now_ns + 10_000_000)
        assert taken > 0.9 * (FUZZ_FRAMES // 4)


def mutated(
    rng: random.Random, seen: list[tuple[FrameKind, bytes]], kinds: list[FrameKind]
) -> tuple[FrameKind, bytes]:
    if rng.random() < 0.2:
        return rng.choice(kinds), rng.randbytes(rng.randrange(300))
    kind, original = rng.choice(seen)
    frame = bytearray(original)
    for _ in range(rng.randrange(4)):
        frame[rng.randrange(min(len(frame), 70))] = rng.randrange(256)
    return kind, bytes(frame[: rng.randrange(len(frame) + 1)] if rng.random() < 0.2 else frame)
