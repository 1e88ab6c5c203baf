"""What a long run leaves when it is killed."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from emu.measure.live_progress import LiveProgress
from emu.measure.run_progress import RunProgress
from emu.report.parts import LEAST_SECONDS, PartWriter
from emu.report.store import load_recording
from emu.runtime.record import record
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import load_spec

INCAST = Path(__file__).parents[2] / "topologies/incast.emu.yml"


class Killed(BaseException):
    pass


def test_a_killed_run_leaves_what_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows, counters, samples and captures up to then, marked as a part."""
    monkeypatch.setattr("emu.report.parts.LEAST_SECONDS", 0.0)
    monkeypatch.setattr("emu.report.parts._SHARE_OF_TIME", 1e9)
    monkeypatch.setattr("emu.runtime.virtual.PROGRESS_SECONDS", 0.0)
    update = PartWriter.update

    def killed_at_half(writer: PartWriter, now: RunProgress) -> None:
        update(writer, now)
        if 2 * now.bytes_done > now.bytes_total:
            raise Killed

    monkeypatch.setattr(PartWriter, "update", killed_at_half)
    spec = load_spec(INCAST, ["payload=elided"])
    with pytest.raises(Killed):
        record("incast", spec, VirtualRunner(), tmp_path, quiet=True)
    left = load_recording(tmp_path)
    assert left.partial
    assert left.notes[0].startswith("a part of a run: up to ")
    assert 0.4 < sum(flow.delivered_bytes or 0 for flow in left.flows) / 15_000_000 < 0.7
    assert len(left.series.time_ns) > 10
    assert all(path.stat().st_size > 10_000 for path in left.captures.values())
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_parts_leave_no_trace_in_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole run has the same bytes, however often it was looked at."""
    spec = load_spec(INCAST, ["payload=elided"])
    whole, _, _ = record("incast", spec, VirtualRunner(), tmp_path / "whole", quiet=True)
    monkeypatch.setattr("emu.report.parts.LEAST_SECONDS", 0.0)
    monkeypatch.setattr("emu.report.parts._SHARE_OF_TIME", 1e9)
    watched, _, _ = record("incast", spec, VirtualRunner(), tmp_path / "watched", quiet=True)
    assert load_recording(tmp_path / "watched").partial
    assert not watched.partial
    assert watched.flows == whole.flows
    assert watched.ports == whole.ports
    assert (watched.series.time_ns == whole.series.time_ns).all()
    assert (watched.series.queue_bytes == whole.series.queue_bytes).all()


def test_a_part_is_written_again_after_a_while(tmp_path: Path) -> None:
    """Twenty times as long as the last one took, and thirty seconds at least."""
    seconds = 0.0
    written: list[float] = []

    def so_far(_: Path) -> NoReturn:
        nonlocal seconds
        written.append(seconds)
        seconds += 3.0
        raise Killed

    writer = PartWriter(tmp_path, clock=lambda: seconds)
    progress = LiveProgress(0, 0, 1, 0, 1, so_far=so_far)
    writer.update(progress)
    assert not written
    seconds = LEAST_SECONDS
    with pytest.raises(Killed):
        writer.update(progress)
    assert written == [LEAST_SECONDS]
