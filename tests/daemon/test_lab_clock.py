"""The clocks of labs that stay up: the real one cannot be stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from emu.daemon.lab_clock import LabClock, RealLabClock
from emu.errors import UsageError
from emu.lab.ipc.rpc import RpcClient
from emu.spec.model import load_spec

SLOWDOWN = 1000


@pytest.fixture
def real() -> RealLabClock:
    """Of a lab that began a second ago. It asks no process in these tests."""
    spec = load_spec(Path("topologies/pair.emu.yml"))
    began_ns = time.monotonic_ns() - 10**9
    return RealLabClock(spec, cast(RpcClient, None), SLOWDOWN, began_ns)


@pytest.mark.parametrize(
    "ask", [lambda clock: clock.pause(), lambda clock: clock.go_on(), lambda clock: clock.step(1)]
)
def test_the_real_clock_cannot_be_stopped(
    real: RealLabClock, ask: Callable[[LabClock], object]
) -> None:
    """The error says which lab can be."""
    with pytest.raises(UsageError, match=r"the lab pair is on the real clock.*--clock exact"):
        ask(real)


def test_its_time_passes_slower_by_the_slowdown(real: RealLabClock) -> None:
    before, now = time.monotonic_ns(), real.now()
    assert now.state == "runs"
    assert (
        10**9 <= now.now_ps * SLOWDOWN / 1000 <= 10**9 + 2 * (time.monotonic_ns() - before) + 10**9
    )
    later_ps = real.now().now_ps
    assert 10**12 // SLOWDOWN <= now.now_ps <= later_ps
    assert later_ps - now.now_ps <= 1000 * (time.monotonic_ns() - before) / SLOWDOWN
