"""Labs in the background on the exact clock: their time, and the results of their traffic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emu.runtime import runner_on
from emu.spec.model import spec_from_text
from tests.support.background_lab import status_of
from tests.support.user import User
from tests.support.waiting import eventually

EXACT = ("--clock", "exact")
REAL = ("--clock", "real", "--set", "slowdown=2000")
"""Without a trial of the machine, which takes some ten seconds."""

FlowTimes = tuple[int, int | None, int | None]
"""Start, end and retransmitted packets."""


def emu(user: User, *words: str) -> str:
    """What a command that succeeds says."""
    ended = user.run_emu(*words)
    assert ended.code == 0, ended.err
    return ended.err


def refused(user: User, *words: str) -> str:
    """What a command says that is refused for its use."""
    ended = user.run_emu(*words)
    assert ended.code == 2, ended
    return ended.err


def time_of(user: User) -> tuple[str, int]:
    """The state of the lab's time, and the time in picoseconds."""
    (lab,) = status_of(user)
    return lab["time"]["state"], lab["time"]["now_ps"]


def finish_traffic(user: User) -> list[dict[str, Any]]:
    """The flows of the traffic, when it is over."""
    eventually(lambda: status_of(user)[0]["traffic"]["state"] != "running")
    (lab,) = status_of(user)
    assert lab["traffic"]["state"] == "over", lab["traffic"]
    flows: list[dict[str, Any]] = lab["traffic"]["flows"]
    return flows


def flow_times(flows: list[dict[str, Any]]) -> Mapping[str, FlowTimes]:
    return {
        one["name"]: (one["start_ns"], one["end_ns"], one["retransmitted_packets"]) for one in flows
    }


def on_virtual_clock(text: str, out: Path) -> Mapping[str, FlowTimes]:
    spec = spec_from_text(text.encode(), source="still.emu.yml")
    flows = runner_on("virtual").run(spec, out=out).flows
    return {one.name: (one.start_ns, one.end_ns, one.retransmitted_packets) for one in flows}
