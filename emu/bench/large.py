"""The largest fabrics on the virtual clock: the specs in examples/large.

    run      8,192 hosts in a fat tree, a permutation of 1 MB with PFC: `emu run`, from the spec to
             the page
    build    16,384 hosts in a rail fabric: the spec is read and validated, and the fabric built
             with its routes, NICs and queue pairs

Measured are the wall-clock time and the peak memory of the process. The estimates that `emu
validate` prints for the run are the baselines of two rows: they should be right within a factor
of 2.

To reach: 12 GB each, and 60 s for the build.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from emu.bench.fat_tree import measured
from emu.bench.row import Row, Target

_EXAMPLES = Path(__file__).parents[2] / "examples/large"
_RUN, _BUILD = _EXAMPLES / "fat-tree-8192.emu.yml", _EXAMPLES / "rail-16384.emu.yml"
MEGABYTES = Target(12_000, at_most=True)
BUILD_SECONDS = Target(60, at_most=True)
_WITHIN = Target(2, at_most=True)


def measure(*, quick: bool) -> list[Row]:
    return [*_of_run(), *_of_build()]


def _of_run() -> list[Row]:
    from emu.measure.run_estimate import estimate_of
    from emu.spec.model import load_spec

    estimate = estimate_of(load_spec(_RUN))
    with TemporaryDirectory(prefix="emu-bench-") as out:
        emu = (sys.executable, "-m", "emu.cli.main", "run")
        seconds, megabytes = measured([*emu, str(_RUN), "--clock", "virtual", "--out", out])
    name = "fat tree, 8192 hosts, permutation of 1 MB"
    return [
        Row(f"{name}: time", "s", seconds),
        Row(f"{name}: memory", "MB", megabytes, target=MEGABYTES),
        Row(f"{name}: time against estimate", "s", seconds, estimate.seconds, _WITHIN),
        Row(
            f"{name}: memory against estimate",
            "MB",
            megabytes,
            estimate.memory_bytes / 1e6,
            _WITHIN,
        ),
    ]


def _of_build() -> list[Row]:
    seconds, megabytes = measured([sys.executable, "-m", "emu.bench.build_only", str(_BUILD)])
    name = "rail, 16384 hosts, validate and build"
    return [
        Row(f"{name}: time", "s", seconds, target=BUILD_SECONDS),
        Row(f"{name}: memory", "MB", megabytes, target=MEGABYTES),
    ]
