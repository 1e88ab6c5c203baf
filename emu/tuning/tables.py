"""The sentences and tables of a search, for the terminal and the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from emu.measure.bootstrap import method_in_words
from emu.report.run_figures import written
from emu.report.seeds import interval_cell
from emu.report.table import NOT_APPLICABLE, Cell, Column, Table, Tone
from emu.sweeps.axes import in_words
from emu.sweeps.units import as_word
from emu.tuning.held_out import WINNER, Load, entries_without_load
from emu.tuning.judge import Contest, Verdict, gain_in_words, mean_of, violated
from emu.tuning.trials import COMPLETE, FAILED, PRUNED, VIOLATED, Trial
from emu.words import counted, listed

if TYPE_CHECKING:
    from emu.tuning.tune import Tuned

MOST_ROWS = 100
_FIRST_ROWS = 12
"""Of the terminal."""
_ENDS = {
    COMPLETE: "measured with all seeds",
    PRUNED: "pruned after some seeds",
    VIOLATED: "ended by a violated constraint",
    FAILED: "failed",
}


def set_line(settings: Mapping[str, Any]) -> str:
    """The settings as options of any command: `--set switches.ecn.kmin=124KB`."""
    return " ".join(f"--set {key}={quote(as_word(value))}" for key, value in settings.items())


def sentences(tuned: Tuned) -> Iterator[str]:
    """How many trials ran, the winner, and the judgement, in sentences."""
    setup = tuned.setup
    counts = Counter(own.how for own in tuned.trials)
    ends = [f"{counts[how]:,} {words}" for how, words in _ENDS.items() if counts[how]]
    yield (
        f"{counted(len(tuned.trials), 'trial')} of up to {counted(len(setup.seeds), 'seed')}: "
        f"{listed(ends)}. {counted(tuned.computed, 'run')} done now."
    )
    if tuned.stop is not None:
        yield "The search was stopped. Start it again to go on."
    elif tuned.winner is None:
        yield f"No winner: no trial kept {_kept(tuned)} with all seeds."
    if tuned.winner is not None:
        several = " (a compromise on the Pareto front)" if len(tuned.goals) > 1 else ""
        yield f"Winner: trial {tuned.winner.number}{several}: {set_line(tuned.winner.settings)}"
    if tuned.judgement is not None:
        yield from tuned.judgement.sentences()
        yield from _about_loads(tuned)


def _kept(tuned: Tuned) -> str:
    return listed([own.words for own in tuned.constraints]) or "all its flows going"


def _about_loads(tuned: Tuned) -> Iterator[str]:
    assert tuned.held_out is not None
    still = entries_without_load(tuned.setup.spec)
    if len(tuned.held_out.loads) == 1 and tuned.setup.request.loads:
        yield (
            "No other load was judged: no entry of the traffic has a rate, a size, a block or "
            "tokens to change, or the spec's rules refuse the change."
        )
    elif still:
        names = listed([entry.name for entry in still])
        yield f"Other loads leave {names} as it is: it has no key for a load."


def terminal_tables(tuned: Tuned) -> Iterator[Table]:
    yield trials_table(tuned, tuned.front, "The best trials", _FIRST_ROWS)
    yield from held_out_tables(tuned)


def held_out_tables(tuned: Tuned) -> Iterator[Table]:
    """A table for each load: the means of all goals, and by how much the winner is better."""
    if tuned.held_out is None or tuned.judgement is None:
        return
    for load in tuned.held_out.loads:
        contests = [own for own in tuned.judgement.contests if own.load == load]
        yield _held_out_table(tuned, load, contests)


def _held_out_table(tuned: Tuned, load: Load, contests: Sequence[Contest]) -> Table:
    assert tuned.held_out is not None
    rows = [_held_out_row(tuned, load, WINNER, None)]
    rows += [_held_out_row(tuned, load, own.rival, own) for own in contests]
    changed = ", ".join(f"{key} {as_word(value)}" for key, value in load.changes.items())
    goals = [Column(name) for goal in tuned.goals for name in (goal.name, f"winner: {goal.name}")]
    return Table(
        title=f"Held-out seeds, {load.name}" + (f": {changed}" if changed else ""),
        columns=(
            Column("settings", numeric=False),
            *goals,
            Column("seeds that violate"),
            Column("winner", numeric=False),
        ),
        rows=tuple(rows),
        note=f"{counted(len(tuned.setup.held_out_seeds), 'seed')}, from "
        f"{tuned.setup.held_out_seeds[0]} on. Intervals: {method_in_words()}; differences are "
        "taken seed by seed, and shown if their interval excludes 0.",
    )


def _held_out_row(tuned: Tuned, load: Load, name: str, contest: Contest | None) -> tuple[Cell, ...]:
    assert tuned.held_out is not None
    rows = tuned.held_out.rows[name, load.factor]
    cells = [Cell(name)]
    for goal in tuned.goals:
        cells.append(interval_cell(mean_of(goal, rows), goal.figure.unit))
        gain = None if contest is None else contest.gains[goal.name]
        cells.append(NOT_APPLICABLE if gain is None else _gain_cell(gain_in_words(goal, gain)))
    broken = violated(rows, tuned.goals, tuned.constraints)
    cells.append(Cell(f"{broken} of {len(rows)}", Tone.BAD if broken else Tone.PLAIN))
    cells.append(NOT_APPLICABLE if contest is None else _verdict_cell(contest.verdict))
    return tuple(cells)


def _gain_cell(words: str) -> Cell:
    tone = {"better": Tone.GOOD, "worse": Tone.BAD}.get(words.split()[0], Tone.FAINT)
    return Cell(words, tone)


def _verdict_cell(verdict: Verdict) -> Cell:
    tones = {Verdict.BETTER: Tone.GOOD, Verdict.WORSE: Tone.BAD, Verdict.SAME: Tone.FAINT}
    return Cell(verdict.value, tones[verdict])


def trials_table(tuned: Tuned, trials: Sequence[Trial], title: str, most: int) -> Table:
    """Trials with their settings, the means of the goals, and how they ended."""
    keys = [own.column for own in tuned.setup.parameters]
    rows = []
    for own in trials[:most]:
        cells = [Cell(str(own.number))]
        cells += [Cell(in_words(key, key.cell(own.settings[key.key]))) for key in keys]
        cells += _mean_cells(tuned, own)
        cells += [Cell(str(len(own.by_seed))), _end_cell(own)]
        rows.append(tuple(cells))
    return Table(
        title=title,
        columns=(
            Column("trial"),
            *(Column(key.key, numeric=key.is_number) for key in keys),
            *(Column(goal.name) for goal in tuned.goals),
            Column("seeds"),
            Column("how it ended", numeric=False),
        ),
        rows=tuple(rows),
        note=f"Of {len(trials):,} trials the first {most} are shown; tune.json has all."
        if len(trials) > most
        else "",
    )


def _mean_cells(tuned: Tuned, own: Trial) -> list[Cell]:
    if not own.means:
        return [NOT_APPLICABLE] * len(tuned.goals)
    pairs = zip(own.means, tuned.goals, strict=True)
    return [Cell(written(mean, goal.figure.unit)) for mean, goal in pairs]


def _end_cell(own: Trial) -> Cell:
    if own.how == VIOLATED:
        return Cell(f"violates {listed(list(own.broken))}", Tone.BAD)
    if own.how == FAILED:
        return Cell(own.error, Tone.BAD)
    return Cell(own.how, Tone.GOOD if own.is_feasible else Tone.FAINT)
