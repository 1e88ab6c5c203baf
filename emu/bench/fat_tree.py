"""A thousand hosts on the virtual clock: a three-tier fat tree at 400 Gbit/s.

The `emu` command runs the shipped spec topologies/fat-tree-1024.emu.yml in a process
of its own: a ring all-reduce of 16 MB, and a random permutation. Measured are the
wall-clock time and the peak memory of the process.

Baseline: none. To reach: under 2 minutes and 4 GB each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from emu.bench.row import Row, Target
from emu.errors import FabricError

SECONDS = Target(120, at_most=True)
MEGABYTES = Target(4000, at_most=True)
_SPEC = Path(__file__).parents[2] / "topologies/fat-tree-1024.emu.yml"
_EMU_RUN = (sys.executable, "-m", "emu.cli.main", "run")
_PERMUTATION = "[{name: permutation, pattern: permutation, among: h1-h1024, size: 16MB}]"
_WORKLOADS = {
    "ring all-reduce": (),
    "permutation": ("--set", f"traffic={_PERMUTATION}", "--set", "verify=[]"),
}


def measure(*, quick: bool) -> list[Row]:
    return [row for name, settings in _WORKLOADS.items() for row in _rows(name, settings)]


def _rows(name: str, settings: tuple[str, ...]) -> list[Row]:
    with TemporaryDirectory(prefix="emu-bench-") as out:
        seconds, megabytes = measured(
            [*_EMU_RUN, str(_SPEC), "--clock", "virtual", "--out", out, *settings]
        )
    figure = f"fat tree, 1024 hosts, {name}"
    return [
        Row(f"{figure}: time", "s", seconds, target=SECONDS),
        Row(f"{figure}: memory", "MB", megabytes, target=MEGABYTES),
    ]


def measured(command: Sequence[str]) -> tuple[float, float]:
    """The wall-clock seconds and the peak memory in MB. Raises FabricError when the run fails."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    stderr = process.stderr.read().decode(errors="replace")
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        what = " ".join(command[:5])
        raise FabricError(
            f"{what} ended with exit code {process.returncode}: {stderr.strip()[-300:]}"
        )
    return time.monotonic() - began, used.ru_maxrss * 1024 / 1e6
