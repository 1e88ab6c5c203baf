"""Runs specs under mpirun, for tests/runtime/test_mpi.py.

mpirun -n K python -m tests.support.mpi_run FILE OUT

FILE holds a pickled list of `MpiRun`. Rank 0 writes the results into folders in OUT.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass
from pathlib import Path

from emu.cli.ranks import assists, first_rank
from emu.measure.live_progress import LiveProgress
from emu.measure.run_progress import RunProgress
from emu.report.run_view import RunFacts
from emu.report.store import save_recording
from emu.report.write import write_run
from emu.runtime import Runner
from emu.runtime.mpi import MpiRunner
from emu.spec.model import Spec
from emu.subnet.subnet import Subnet


@dataclass(frozen=True)
class MpiRun:
    """`name`: of the folder; `threads`: of each rank; no `subnet`: OpenSM makes it."""

    name: str
    spec: Spec
    subnet: Subnet | None = None
    threads: int = 1

    def write(self, runner: Runner, out: Path) -> None:
        """Writes the results of the run, and in `so-far` those up to its first report."""
        folder = out / self.name
        recording = runner.run(self.spec, out=folder, on_progress=_FirstReport(folder / "so-far"))
        facts = RunFacts(self.spec.name, recording, self.spec, self.spec.topology.build())
        write_run(facts, folder)


class _FirstReport:
    """Keeps what a run has recorded when it first reports progress."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, progress: RunProgress) -> None:
        if isinstance(progress, LiveProgress) and not self._folder.exists():
            self._folder.mkdir(parents=True)
            save_recording(progress.so_far(self._folder), self._folder)


def main() -> None:
    if assists():
        return
    file, out = map(Path, sys.argv[1:])
    with first_rank():
        for run in pickle.loads(file.read_bytes()):
            run.write(MpiRunner(run.subnet, run.threads), out)


if __name__ == "__main__":
    main()
