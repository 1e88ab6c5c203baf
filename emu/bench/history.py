"""Earlier runs of the benchmark on this machine, and whether a figure has become worse.

The history is a file of JSON lines in the user's cache folder, one line a run: date, commit,
machine and figures. Runs are compared only with runs on the same machine, of the same kind
(quick or not).

A figure is compared by its ratio to its baseline, since the baseline is measured in the same
run and feels the same load. A figure without a baseline is compared by its value.

    Worse: at least 10 % worse than the median of the earlier runs, and worse than each of them.

Both are needed: on a busy machine a figure may well be 10 % below the median, but then it has
been as low before. At least three earlier runs are needed. Of the earlier runs the last 20
count, so that a machine that was slow once is forgotten.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from emu.bench.row import Row
from emu.folders import user_folder

SCHEMA = "emu.bench-history/1"
WORSE_BY = 0.1
FEWEST_RUNS = 3
RUNS_THAT_COUNT = 20
_MACHINE = ("processor", "processors", "memory", "root")
"""Runs with equal values of these are on the same machine. Its load and kernel may change."""
Entry = dict[str, Any]


def history_file() -> Path:
    """The default file. It is outside the source tree, so that `make clean` and a fresh clone keep
    it."""
    return user_folder("XDG_CACHE_HOME", ".cache") / "emu" / "bench-history.jsonl"


@dataclass(frozen=True)
class Compared:
    """A figure beside its earlier values, oldest first."""

    row: Row
    earlier: tuple[float, ...]

    @property
    def last(self) -> float | None:
        return self.earlier[-1] if self.earlier else None

    @property
    def median(self) -> float | None:
        return median(self.earlier) if self.earlier else None

    @property
    def is_worse(self) -> bool:
        """Whether the figure is worse by the rule at the top of this file."""
        value = self.row.compared
        if value is None or len(self.earlier) < FEWEST_RUNS:
            return False
        middle = median(self.earlier)
        if self.row.is_better_low:
            return value > max(self.earlier) and value >= middle * (1 + WORSE_BY)
        return value < min(self.earlier) and value <= middle * (1 - WORSE_BY)


def entry(machine: Mapping[str, Any], rows: Sequence[Row], *, quick: bool) -> Entry:
    """The entry of this run in the history."""
    return {
        "schema": SCHEMA,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": dict(machine),
        "quick": quick,
        "figures": [
            {
                "figure": row.figure,
                "unit": row.unit,
                "measured": row.measured,
                "baseline": row.baseline,
                "ratio": row.ratio,
            }
            for row in rows
            if row.measured is not None
        ],
    }


def append(file: Path, new: Entry) -> None:
    """Appends a run to the history, and makes the folder if it is missing. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(new) + "\n")


def compared(file: Path, new: Entry, rows: Sequence[Row]) -> list[Compared]:
    """Each row beside its values in earlier runs of the same kind."""
    earlier = [old for old in _entries(file) if _is_alike(old, new)][-RUNS_THAT_COUNT:]
    return [Compared(row, tuple(_values(earlier, row))) for row in rows]


def _entries(file: Path) -> Iterator[Entry]:
    """The entries of the history. Lines of another version, or cut short, are skipped."""
    if not file.exists():
        return
    for line in file.read_text().splitlines():
        try:
            old = json.loads(line)
        except ValueError:
            continue
        if isinstance(old, dict) and old.get("schema") == SCHEMA:
            yield old


def _is_alike(old: Entry, new: Entry) -> bool:
    same_machine = all(old["machine"].get(key) == new["machine"].get(key) for key in _MACHINE)
    return same_machine and bool(old["quick"] == new["quick"])


def _values(earlier: Sequence[Entry], row: Row) -> Iterator[float]:
    key = "measured" if row.baseline is None else "ratio"
    for old in earlier:
        for figure in old["figures"]:
            if figure["figure"] == row.figure and figure[key] is not None:
                yield figure[key]


def _commit() -> str:
    """The commit that was measured, with `-dirty` where files differ from it."""
    here = Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=here, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()
