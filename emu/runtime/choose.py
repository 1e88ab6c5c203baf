"""The runner that a model, a clock and a number of threads ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emu.clocks import AUTO, VIRTUAL
from emu.errors import UsageError
from emu.models import PACKETS
from emu.mpi_environment import mpi_ranks
from emu.runtime.auto_clock import ClockChoice, auto_clock
from emu.runtime.runner import Runner, ignore, runner_of
from emu.spec.scenario import Spec


def choose_runner(
    model: str,
    clock: str,
    threads: int | None,
    specs: Sequence[Spec],
    *,
    clock_option: str | None,
    on_choice: Callable[[str], None] = ignore,
) -> Runner:
    """The runner for these specs.

    `clock_option` is how the user has named a clock, `--clock` or `clock`; None if they have not.
    `on_choice` gets the clock that `auto` chose, and why. Raises UsageError for choices that
    exclude each other.
    """
    if model != PACKETS.name and clock_option is not None:
        raise UsageError(
            f"{clock_option}: the {model} model has no clock; leave one of the two out"
        )
    if model == PACKETS.name and clock == AUTO:
        choice = choose_clock(threads, specs)
        clock = choice.clock.name
        on_choice(str(choice))
    return on_threads(runner_of(model, clock), threads)


def on_threads(runner: Runner, threads: int | None) -> Runner:
    """The runner, with as many threads as --threads says. Raises UsageError where it has no
    choice."""
    return runner if threads is None else runner.with_threads(threads)


def choose_clock(threads: int | None, specs: Sequence[Spec]) -> ClockChoice:
    """What `--clock auto` means together with --threads, for these specs."""
    if threads is not None:
        return ClockChoice(VIRTUAL, "the one that runs on several threads")
    if mpi_ranks() > 1:
        return ClockChoice(VIRTUAL, "the one that runs over several processes")
    return auto_clock(specs)
