"""Fidelity over time: recorded in each process, and merged over all processes."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emu.measure.cpu import CpuSamples
from emu.measure.recording import Recording
from emu.measure.timeline import EMPTY_TIMELINE, LOSSES, Timeline
from tests.support.lab_recording import at_the_start, recorded
from tests.support.observations import histogram, observation

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "emu/core"
SLOTS = 1024
FIRST_NS = 1_000_000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("timeline") / "timeline_trace"
    flags = ["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    source = str(HERE / "timeline_trace.c")
    subprocess.run(["cc", *flags, f"-I{CORE}", source, "-o", str(built)], check=True)
    return built


@pytest.mark.parametrize("longest_ns", [10**8, SLOTS * FIRST_NS, 10**10, 10**12])
def test_values_land_in_their_interval(program: Path, longest_ns: int) -> None:
    """The maximum of each interval, and the sum of losses; a run of any length fits."""
    rng = random.Random(longest_ns)
    notes = [
        (rng.randrange(longest_ns), *(rng.randrange(n) for n in (10**6, 10**6, 4)), 2, 1)
        for _ in range(3_000)
    ]
    notes += [(longest_ns - 1, 1, 1, 0, 1, 0), (-5, 7, 8, 1, 1, 3)]
    text = "\n".join(" ".join(map(str, note)) for note in notes)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    slot_ns, *rows = done.stdout.splitlines()
    fit = [FIRST_NS << n for n in range(40) if longest_ns <= SLOTS * (FIRST_NS << n)]
    assert int(slot_ns) == fit[0]
    expected = np.zeros((SLOTS, 2 + len(LOSSES) + 1), np.int64)
    for since_ns, late_ns, kept_ns, loss, frames, dropped in notes:
        row = expected[max(0, since_ns) // fit[0]]
        row[:2] = np.maximum(row[:2], (late_ns, kept_ns))
        row[2 + loss] += frames
        row[-1] += dropped
    assert np.array_equal(np.loadtxt(rows, np.int64), expected)


def _timeline(interval_ns: int, **at: tuple[int, int, tuple[int, ...]]) -> Timeline:
    """`at`: by slot (`s3`), the most that frames were late and were kept, and the losses."""
    late, kept = np.zeros((2, SLOTS), np.int64)
    lost = np.zeros((SLOTS, len(LOSSES)), np.int64)
    for name, what in at.items():
        slot = int(name[1:])
        late[slot], kept[slot], lost[slot] = what
    return Timeline(interval_ns, late, kept, lost, np.zeros(SLOTS, np.int64))


def _recorded(shim: Timeline, nics: Timeline, cpu: CpuSamples) -> Recording:
    """A recording of two processes' timelines."""
    own = observation(histogram())
    assert own.timing is not None
    return recorded(
        replace(at_the_start(), timing=replace(own.timing, timeline=shim)),
        replace(own, timing=replace(own.timing, timeline=nics)),
        cpu=cpu,
    )


def test_timelines_of_all_processes_merge() -> None:
    """In emulated time. The NICs' intervals are twice as long as the shim's."""
    recording = _recorded(
        _timeline(1_000_000, s0=(10_000, 3_000, (0, 0, 0, 0)), s3=(20_000, 5_000, (2, 0, 0, 1))),
        _timeline(2_000_000, s1=(15_000, 0, (0, 4, 0, 0)), s2=(0, 0, (0, 0, 1, 0))),
        CpuSamples((-50_000_000, 2_000_000, 6_000_000), {"shim": (0, 0.01, 0.014)}),
    )
    series, machine = recording.series, recording.machine
    assert series.late_time_ns.tolist() == [2_000, 4_000]
    assert series.late_ns.tolist() == [10, 20]
    assert machine.ledger_time_ns.tolist() == [2_000, 4_000, 6_000]
    assert machine.kept_ns.tolist() == [3, 5, 0]
    assert machine.losses == ("ovs", "arriving", "leaving", "place")
    assert machine.lost_frames.tolist() == [[0, 0, 0, 0], [2, 4, 0, 1], [0, 0, 1, 0]]
    assert machine.cpu_time_ns.tolist() == [-50_000, 2_000, 6_000]
    assert machine.cpu_ns.tolist() == [[0], [10_000_000], [14_000_000]]
    assert recording.cpu_seconds == {"shim": 0.014}


def test_process_without_records_changes_nothing() -> None:
    nothing = CpuSamples((0,), {"shim": (0.0,)})
    timeline = _timeline(1_000_000, s5=(7_000, 9_000, (1, 0, 0, 0)))
    for views in ((timeline, EMPTY_TIMELINE), (EMPTY_TIMELINE, timeline)):
        machine = _recorded(*views, nothing).machine
        assert machine.kept_ns.tolist() == [0, 0, 0, 0, 0, 9]
        assert machine.lost_frames.sum(axis=0).tolist() == [1, 0, 0, 0]
    assert len(_recorded(EMPTY_TIMELINE, EMPTY_TIMELINE, nothing).machine.ledger_time_ns) == 0
