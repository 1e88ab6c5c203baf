"""The benchmark's history: the runs to compare with, and the definition of worse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emu.bench.history import Compared, append, compared, entry, history_file
from emu.bench.row import Row, Target
from emu.bench.table import table

HERE: dict[str, Any] = {"processor": "A", "processors": 2, "memory": "1 kB", "root": True}


def rate(ratio: float) -> Row:
    return Row("relay", "frames/s", 1000 * ratio, 1000.0, Target(0.8))


def seconds(value: float) -> Row:
    return Row("lab", "s", value)


def test_runs_are_compared_with_those_of_this_machine(tmp_path: Path) -> None:
    """Quick runs are compared only with quick runs."""
    file = tmp_path / "cache" / "history.jsonl"
    for machine, quick, value in (
        (HERE, True, 0.9),
        (HERE | {"processor": "B"}, True, 0.1),
        (HERE, False, 0.2),
        (HERE | {"load_average": 3.0}, True, 0.7),
    ):
        append(file, entry(machine, [rate(value)], quick=quick))
    file.write_text(file.read_text() + '{"schema": "emu.bench-history/1", "da')
    (found,) = compared(file, entry(HERE, [], quick=True), [rate(0.8)])
    assert found.earlier == (0.9, 0.7)
    assert found.last == 0.7
    assert found.median == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("row", "earlier", "is_worse"),
    [
        (rate(0.7), (0.9, 0.8, 0.85), True),
        (rate(0.78), (0.9, 0.8, 0.85), False),  # less than 10 %
        (rate(0.7), (0.9, 0.6, 0.85), False),  # as low before
        (rate(0.7), (0.9, 0.8), False),  # too few
        (rate(1.2), (0.9, 0.8, 0.85), False),
        (seconds(1.2), (1.0, 1.1, 1.0), True),
        (seconds(0.5), (1.0, 1.1, 1.0), False),
    ],
)
def test_worse_is_beyond_all_earlier_runs_and_ten_percent(
    row: Row, earlier: tuple[float, ...], is_worse: bool
) -> None:
    """Lower rates and higher times are worse."""
    assert Compared(row, earlier).is_worse is is_worse
    assert ("WORSE" in table([Compared(row, earlier)])) is is_worse


def test_an_entry_names_the_commit_and_the_figures() -> None:
    new = entry(HERE, [rate(0.9), Row("hop", "", note="no Open vSwitch")], quick=False)
    assert new["commit"]
    assert new["date"].endswith("+00:00")
    assert [figure["figure"] for figure in new["figures"]] == ["relay"]
    assert new["figures"][0]["ratio"] == pytest.approx(0.9)


def test_the_history_is_in_the_cache_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "emu" / "bench-history.jsonl"
