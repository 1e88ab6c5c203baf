"""The runner that --model, --clock and --threads ask for, over all processes of mpirun."""

from __future__ import annotations

from collections.abc import Sequence

from emu.cli.notes import print_note
from emu.cli.options import is_given
from emu.mpi_environment import mpi_ranks
from emu.runtime import Runner
from emu.runtime.choose import choose_runner
from emu.runtime.runner import ignore
from emu.spec.model import Spec


def chosen_runner(
    model: str, clock: str, threads: int | None, specs: Sequence[Spec], *, quiet: bool
) -> Runner:
    """The runner for these specs. Unless `quiet`, says which clock it chose. Raises UsageError for
    options that exclude each other."""
    runner = choose_runner(
        model,
        clock,
        threads,
        specs,
        clock_option="--clock" if is_given("clock") else None,
        on_choice=ignore if quiet else print_note,
    )
    return runner if mpi_ranks() == 1 else runner.over_ranks()
