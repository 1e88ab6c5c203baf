"""The settings of a candidate that is tuned before it is compared.

A search (`emu tune`) by the figure that decides. Its winner and the vendors' presets run with
held-out seeds, and the best of them is taken. The comparison has other seeds than both: the best of
many was also lucky on its own. If nothing is better than the defaults, there is no such candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from emu.decisions.candidates import Candidate, Refused
from emu.decisions.names import TUNED
from emu.decisions.request import DecisionRequest
from emu.errors import EmuError, FabricError
from emu.measure.bootstrap import FEWEST
from emu.runtime.runner import ignore
from emu.spec.from_code import with_values
from emu.spec.scenario import Spec
from emu.sweeps.units import as_word
from emu.tuning.goals import Goal, Wish
from emu.tuning.held_out import WINNER
from emu.tuning.judge import mean_of, violated
from emu.tuning.request import TuneRequest, setup_of
from emu.tuning.rivals import AS_IT_IS, DEFAULTS
from emu.tuning.tune import Tuned, run_tune

_CURVE = ("switches.ecn.kmin", "switches.ecn.kmax", "switches.ecn.pmax")
_OF_CONTROLS: Mapping[str, Sequence[str]] = {
    "dcqcn": ("hosts.nic.dcqcn.rai", "hosts.nic.dcqcn.increase_timer"),
    "dcqcn-nvidia": (
        "hosts.nic.roce_cc_ecn.rpg_ai_rate",
        "hosts.nic.roce_cc_ecn.rpg_time_reset",
    ),
    "dctcp": ("hosts.nic.dctcp.g",),
    "swift": ("hosts.nic.swift.base_target", "hosts.nic.swift.ai"),
}
"""Congestion control -> its parameters that are tuned unless the user names keys: how soon and how
much a sender speeds up after it was slowed down."""


@dataclass(frozen=True)
class Tuning:
    """The settings of a candidate."""

    candidate: Candidate
    """With the settings."""
    origin: str
    """Where they come from, in words, and what they are."""


def refuse_keys(candidates: Sequence[Candidate], request: DecisionRequest) -> None:
    """Raises UsageError or SpecError if the user's keys cannot be searched."""
    tuned = next((own for own in candidates if own.fabric == TUNED), None)
    if tuned is not None and request.vary:
        any_goal = Wish("", maximise=False, option=f"{request.dashes}by")
        setup_of(_search(tuned.spec, any_goal, request))


def tune(
    candidate: Candidate,
    goal: Goal,
    request: DecisionRequest,
    folder: Path,
    *,
    stream: TextIO | None,
    on_note: Callable[[str], None] = ignore,
) -> Tuning | Refused:
    """Searches the settings of a candidate, or goes on with the search in the folder. Raises
    KeyboardInterrupt and FabricError if it is stopped."""
    try:
        asked = _search(candidate.spec, _wish(goal, request), request)
        tuned = run_tune(setup_of(asked), folder, stream=stream, on_note=on_note).tuned
    except FabricError:
        raise
    except EmuError as error:
        return Refused(candidate.name, f"its settings cannot be searched: {error}")
    if tuned.stop is not None:
        raise tuned.stop
    if tuned.winner is None or tuned.held_out is None:
        return Refused(candidate.name, "no trial of its search ended well")
    best = _best(tuned)
    if best in (DEFAULTS, AS_IT_IS):
        reason = f"neither the search ({len(tuned.trials)} trials) nor a preset beats the defaults"
        return Refused(candidate.name, reason)
    return _tuning(candidate, tuned, best)


def _wish(goal: Goal, request: DecisionRequest) -> Wish:
    columns = goal.figure.columns
    name = columns[0] if len(columns) == 1 else columns[0].partition(".")[2]
    return Wish(name, goal.maximise, f"{request.dashes}by")


def _search(spec: Spec, wish: Wish, request: DecisionRequest) -> TuneRequest:
    option = f"{request.dashes}vary"
    keys = request.vary or dict.fromkeys([*_CURVE, *_OF_CONTROLS.get(_control(spec), ())])
    return TuneRequest(
        with_values(spec, {"seed": spec.seed + request.seeds}, source=spec.name),
        keys,
        [wish],
        seeds=FEWEST,
        trials=request.trials,
        loads=(),
        workers=request.workers,
        scheduler=request.scheduler,
        option=option,
    )


def _control(spec: Spec) -> str:
    return spec.host(next(iter(spec.topology.build().host))).nic.cc


def _best(tuned: Tuned) -> str:
    """The winner or the rival with the best mean on held-out seeds, of those whose runs end."""
    assert tuned.held_out is not None
    (goal,) = tuned.goals
    rows = {name: own for (name, _), own in tuned.held_out.rows.items()}
    means = {
        name: own.mean
        for name, each in rows.items()
        if not violated(each, [goal], []) and (own := mean_of(goal, each)) is not None
    }
    best = max if goal.maximise else min
    return best(means, key=means.__getitem__, default=DEFAULTS)


def _tuning(candidate: Candidate, tuned: Tuned, best: str) -> Tuning:
    assert tuned.winner is not None
    if best == WINNER:
        settings = tuned.winner.settings
        spec = with_values(candidate.spec, settings, source=candidate.name)
        values = ", ".join(f"{key} {as_word(value)}" for key, value in settings.items())
        origin = f"the best of {len(tuned.trials)} trials: {values}"
    else:
        rival = next(own for own in tuned.setup.rivals if own.name == best)
        spec = with_values(rival.spec, {"seed": candidate.spec.seed}, source=candidate.name)
        origin = f"{rival.meaning}, better than the best of {len(tuned.trials)} trials"
    return Tuning(replace(candidate, spec=spec), origin)
