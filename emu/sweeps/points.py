"""The points of a sweep: which values its keys have together.

grid      every combination
random    a Latin hypercube: with N points, each key has one value in each N-th of its range
list      rows of a table, such as a CSV file whose header has the keys
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from emu.errors import UsageError
from emu.regular import open_regular
from emu.spec.settings import is_key
from emu.sweeps.values import Axis, plain_value

Settings = Mapping[str, Any]
"""Keys with dots, and their values."""
VARIANT = "variant"
"""The column of a list that names a variant of the spec's `compare:`."""
MOST_POINTS = 1_000_000


def grid(axes: Sequence[Axis]) -> list[Settings]:
    """Every combination, the last key fastest. Raises UsageError for a span without steps."""
    values = [axis.listed() for axis in axes]
    count = 1
    for own in values:
        count *= len(own)
    if count > MOST_POINTS:
        raise UsageError(f"--vary: {count:,} combinations are more than {MOST_POINTS:,}")
    return [
        dict(zip((axis.key for axis in axes), chosen, strict=True)) for chosen in product(*values)
    ]


def latin_hypercube(axes: Sequence[Axis], count: int, seed: int) -> list[Settings]:
    """So many random points; the same `seed` gives the same ones."""
    from scipy.stats import qmc

    shares = qmc.LatinHypercube(d=len(axes), rng=seed).random(count)
    return [
        {axis.key: axis.at(float(share)) for axis, share in zip(axes, row, strict=True)}
        for row in shares
    ]


def in_file(path: Path) -> list[Settings]:
    """The points of a CSV file: keys in its first line, a point in each further line.

    An empty cell leaves the key as it is in the spec. Raises UsageError with all mistakes.
    """
    try:
        with open_regular(path) as file:
            text = file.read().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--points: {path}: cannot be read ({error})") from None
    rows = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise UsageError(
            f"--points: {path}: has no points; its first line has keys as switches.ecn.kmin, and "
            "each further line their values"
        )
    keys = [cell.strip() for cell in rows[0]]
    wrong = [
        *(f"{path}: {key!r} is no key" for key in keys if not is_key(key)),
        *(f"{path}: {key} is there twice" for key in dict.fromkeys(keys) if keys.count(key) > 1),
        *(
            f"{path}: line {number} has {len(row)} cells, and the first line {len(keys)}"
            for number, row in enumerate(rows[1:], start=2)
            if len(row) != len(keys)
        ),
    ]
    if wrong:
        raise UsageError("\n".join(f"--points: {line}" for line in wrong))
    return [
        {
            key: plain_value(cell, f"--points {path}: {key}")
            for key, cell in zip(keys, row, strict=True)
            if cell.strip()
        }
        for row in rows[1:]
    ]


def combined(lists: Iterable[Sequence[Settings]]) -> list[Settings]:
    """Each point of a list with each of the next one."""
    return [{k: v for own in chosen for k, v in own.items()} for chosen in product(*lists)]
