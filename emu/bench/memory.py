"""The memory of a lab of 16 hosts: all processes of a run, including `emu` itself.

A process counts its share of shared memory (PSS of proc(5)), so that the sum is the
memory that the machine has allocated. The figure is the peak while traffic runs.

Baseline: none. To reach: at most 600 MB.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from emu.bench.row import Row, Target
from emu.errors import FabricError

TARGET = Target(600, at_most=True)
_SECONDS_BETWEEN_POLLS = 0.2
_SPEC = """
name: memory
slowdown: 2000
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 8}
switches: {pfc: {}}
traffic: [{name: incast, pattern: incast, from: h2-h16, to: h1, size: 500KB}]
"""


def measure(*, quick: bool) -> list[Row]:
    with TemporaryDirectory(prefix="emu-bench-") as folder:
        spec = Path(folder, "memory.emu.yml")
        spec.write_text(_SPEC)
        command = [sys.executable, "-m", "emu.cli.main", "run", str(spec), "--out", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as emu:
            most = _watch(emu)
    megabytes = {name: pss / 1000 for name, pss in most.items()}
    total = sum(megabytes.values())
    return [Row("memory of a live lab, 16 hosts", "MB", total, target=TARGET, details=megabytes)]


def _watch(emu: subprocess.Popen[bytes]) -> dict[str, int]:
    """The memory of each process in KB, at the moment of the greatest sum."""
    most: dict[str, int] = {}
    while True:
        with suppress(subprocess.TimeoutExpired):
            emu.wait(_SECONDS_BETWEEN_POLLS)
            break
        now = {f"{name} {pid}": _pss(pid) for pid, name in _family(emu.pid)}
        most = max(most, now, key=lambda pss: sum(pss.values()))
    if emu.returncode not in (0, 5):
        raise FabricError(
            f"the run whose memory was to be measured ended with exit code {emu.returncode}"
        )
    return most


def _family(pid: int) -> Iterator[tuple[int, str]]:
    """A process and all its descendants, with their names."""
    with suppress(FileNotFoundError, ProcessLookupError):
        yield pid, Path(f"/proc/{pid}/comm").read_text().strip()
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from _family(int(child))


def _pss(pid: int) -> int:
    """The proportional set size in KB; 0 for a process that has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
