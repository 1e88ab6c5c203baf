"""What nccl-tests measured on a real system: its output as printed, or a CSV file.

    #       size         count      type   redop    root     time   algbw   busbw #wrong   ...
         1048576        262144     float     sum      -1    61.84   16.96   29.67      0   ...

    size_bytes,busbw_gb_per_s,time_us          any order; time_us may be left out
    1048576,29.67,61.84

Of the output, the out-of-place half counts. Lines that begin with # are comments; those that name
ranks tell how many there were. Older versions have no column `root`, so the two halves are found
from the right. Text around the table is skipped, such as NCCL's own log and what mpirun puts in
front of lines. Of a CSV file, comments above the header are kept as notes: its source, for example.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from emu.errors import UsageError
from emu.regular import read_regular

LONGEST_BYTES = 16_000_000
_RANK = re.compile(r"#\s+Rank\s+(\d+)\s")
_MPIRUN = re.compile(r"^\[\d+,\d+\]<std(?:out|err)>:\s?")
_HALF = 4
"""Columns of a half: time, algbw, busbw, #wrong."""
_LEFT = (4, 5)
"""Columns before the halves: size, count, type, redop, and perhaps root."""
_SIZE, _BUSBW, _TIME = "size_bytes", "busbw_gb_per_s", "time_us"


@dataclass(frozen=True)
class MeasuredSize:
    """The measurement of one size."""

    size_bytes: int
    busbw_gb_per_s: float
    time_us: float | None
    """None: the file does not tell."""


@dataclass(frozen=True)
class MeasuredRun:
    """A file of measurements, in order of size."""

    file: str
    sizes: tuple[MeasuredSize, ...]
    ranks: int | None = None
    """None: the file does not tell."""
    notes: tuple[str, ...] = ()
    """The comments of a CSV file."""


def read_measured(path: Path) -> MeasuredRun:
    """Reads a file. Raises UsageError with all mistakes."""
    try:
        text = read_regular(path, LONGEST_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"--measured {path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UsageError(
            f"--measured {path}: is not text; give nccl-tests' output, or a CSV file"
        ) from None
    lines = [_MPIRUN.sub("", line).rstrip() for line in text.splitlines()]
    mistakes: list[str] = []
    head = next((line for line in lines if line and not line.startswith("#")), "")
    if _SIZE in head.split(","):
        notes = tuple(_notes(lines))
        sizes, ranks = list(_in_csv(lines, mistakes)), None
    else:
        notes, sizes, ranks = (), list(_in_output(lines)), _ranks(lines)
    if not sizes and not mistakes:
        mistakes.append(
            "has no measurement; give the output of nccl-tests with its table, or a CSV file "
            f"whose first line is {_SIZE},{_BUSBW}"
        )
    if mistakes:
        raise UsageError("\n".join(f"--measured {path}: {mistake}" for mistake in mistakes))
    ordered = sorted({one.size_bytes: one for one in sizes}.values(), key=_by_size)
    return MeasuredRun(path.name, tuple(ordered), ranks, notes)


def _by_size(one: MeasuredSize) -> int:
    return one.size_bytes


def _ranks(lines: Sequence[str]) -> int | None:
    found = {int(match[1]) for line in lines if (match := _RANK.match(line))}
    return len(found) or None


def _notes(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("#"):
            return
        yield line.lstrip("# ")


def _in_output(lines: Sequence[str]) -> Iterator[MeasuredSize]:
    """The rows of the table; everything else is skipped."""
    for line in lines:
        words = line.split()
        if len(words) - 2 * _HALF in _LEFT and words[0].isdigit() and words[1].isdigit():
            time, _, busbw, _ = words[-2 * _HALF : -_HALF]
            if (took := _positive(time)) and (rate := _positive(busbw)):
                yield MeasuredSize(int(words[0]), rate, took)


def _in_csv(lines: Sequence[str], mistakes: list[str]) -> Iterator[MeasuredSize]:
    """The rows of a CSV file; rows that are not understood become mistakes."""
    numbered = [(n, line) for n, line in enumerate(lines, 1) if line and not line.startswith("#")]
    rows = csv.DictReader([line for _, line in numbered])
    if _BUSBW not in (rows.fieldnames or ()):
        mistakes.append(f"has no column {_BUSBW} beside {_SIZE}; add it, in GB/s")
        return
    for (number, _), row in zip(numbered[1:], rows, strict=False):
        size, rate = _positive(row[_SIZE]), _positive(row[_BUSBW])
        took = _positive(row.get(_TIME))
        if size is None or size != int(size):
            mistakes.append(f"line {number}: {_SIZE} has no whole number of bytes above 0")
        elif rate is None:
            mistakes.append(f"line {number}: {_BUSBW} has no number above 0")
        elif took is None and row.get(_TIME):
            mistakes.append(f"line {number}: {_TIME} has no number above 0")
        else:
            yield MeasuredSize(int(size), rate, took)


def _positive(text: str | None) -> float | None:
    """The number, if it is one above 0."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if number > 0 and math.isfinite(number) else None
