"""A run over ranks that lasts, for tests/runtime/test_mpi.py to end it.

mpirun -n K python -m tests.support.mpi_long_run OUT

Rank 0 prints a line whenever there is progress. A silent rank is found earlier than in use.
"""

from __future__ import annotations

import sys
from pathlib import Path

from emu.cli.ranks import assists, first_rank
from emu.measure.run_progress import RunProgress
from emu.runtime import heartbeat
from emu.runtime.mpi import MpiRunner
from emu.spec.model import load_spec

_SPEC = Path(__file__).parents[2] / "topologies/permutation.emu.yml"


def main() -> None:
    heartbeat.SILENCE_SECONDS = 5.0
    if assists():
        return
    with first_rank():
        spec = load_spec(_SPEC, ["traffic.0.size=400MB", "payload=elided"])
        MpiRunner().run(spec, out=Path(sys.argv[1]), on_progress=_show)


def _show(progress: RunProgress) -> None:
    print("at", progress.emulated_ns, "ns", flush=True)


if __name__ == "__main__":
    main()
