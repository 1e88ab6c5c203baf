"""Which slowdown a run gets when its spec leaves the choice to us.

The machine is tried once with a reference load (reference.emu.yml), for each way of
forwarding. The result is the smallest slowdown on a ladder at which live runs keep
their schedule. Two runs try each slowdown; if they disagree, because the machine was
busy for a moment, a third decides. The user's cache keeps the result. A fabric that
moves more packets, or whose frames are shorter in time, gets a larger slowdown, and
every fabric gets some room for worse moments than those that were measured.
"""

from __future__ import annotations

import json
import os
import platform
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import emu
from emu.errors import EmuError
from emu.folders import user_folder
from emu.measure.demand import Demand, demand_of
from emu.measure.recording import Recording
from emu.output_dir import make_folder, write_text
from emu.spec.model import load_spec
from emu.spec.scenario import Spec
from emu.units import round_up

_REFERENCE = Path(__file__).with_name("reference.emu.yml")
_LADDER = (200, 250, 320, 400, 500, 640, 800, 1000, 1250, 1600, 2000, 2500, 3200, 4000, 6400, 12800)
_GUESS = 4000.0
_ROOM = 1.4
"""The slowdown chosen, as a multiple of the least that was kept."""

Run = Callable[[Spec, float, Path], Recording]
"""A live run at a given slowdown, its captures in a folder."""


def choose_slowdown(
    spec: Spec, run: Run, on_note: Callable[[str], None]
) -> tuple[float, tuple[str, ...]]:
    """The slowdown for a spec, and where it was our choice, a note that says why.

    If the machine has not been measured yet, that takes a few seconds, and `on_note` informs the
    user why.
    """
    if spec.slowdown != "auto":
        return spec.slowdown, ()
    plane = spec.plane_in_use
    least = _least_slowdown(plane, run, on_note)
    if least is None:
        return _GUESS, (f"slowdown {_GUESS:g} is a guess: the machine was too busy to be tried",)
    reference = _reference(plane)
    times = _times(demand_of(spec), demand_of(reference))
    chosen = float(round_up(least * times * _ROOM))
    why = (
        f"slowdown {chosen:g} chosen: with the {plane} plane this machine kept up with the "
        f"reference fabric down to {least}, this fabric asks {times:.2g} times as much, "
        f"and {_ROOM - 1:.0%} is room for worse moments"
    )
    return chosen, (why,)


def _times(wanted: Demand, reference: Demand) -> float:
    """How much more a fabric asks than the reference; never less than its punctuality needs."""
    return max(
        wanted.packet_hops_per_second / reference.packet_hops_per_second,
        reference.budget_ns / wanted.budget_ns,
    )


def _reference(plane: str) -> Spec:
    return load_spec(_REFERENCE, [f"plane={plane}"])


@cache
def _least_slowdown(plane: str, run: Run, on_note: Callable[[str], None]) -> int | None:
    """From the cache; otherwise tried now and kept there. None: the machine is too busy now."""
    known = _read_cache()
    if plane not in known:
        on_note(f"finding out what this machine can do with the {plane} plane: once, some seconds")
        least = _try_machine(_reference(plane), run)
        if least is None:
            return None
        known[plane] = least
        _write_cache(known)
    return known[plane]


def _try_machine(reference: Spec, run: Run) -> int | None:
    """The first rung of the ladder, by bisection, that the machine keeps; None: it keeps none."""

    def keeps_up(slowdown: int) -> bool:
        first, second = (_conclusive(run, reference, slowdown) for _ in range(2))
        return first if first == second else _conclusive(run, reference, slowdown)

    rung = bisect_left(_LADDER, True, key=keeps_up)
    return _LADDER[rung] if rung < len(_LADDER) else None


def _conclusive(run: Run, reference: Spec, slowdown: int) -> bool:
    with TemporaryDirectory(prefix="emu-") as out:
        recording = run(reference, float(slowdown), Path(out))
    return recording.fidelity.verdict == "ok"


def _cache_file() -> Path:
    return user_folder("XDG_CACHE_HOME", ".cache") / "emu" / "machine.json"


def _machine() -> dict[str, object]:
    """What the measurement depends on. When any of it changes, the machine is tried again."""
    return {
        "emu": emu.__version__,
        "kernel": platform.release(),
        "processors": len(os.sched_getaffinity(0)),
        "root": os.geteuid() == 0,
    }


def _read_cache() -> dict[str, int]:
    """Plane -> least slowdown; empty when this machine has not been tried as it is now.

    Content that this module cannot have written is ignored.
    """
    try:
        cached = json.loads(_cache_file().read_text())
    except (OSError, ValueError, EmuError):
        return {}
    match cached:
        case {"machine": machine, "least_slowdown": dict(known)} if machine == _machine():
            return {plane: least for plane, least in known.items() if least in _LADDER}
    return {}


def _write_cache(known: dict[str, int]) -> None:
    """Does nothing where the cache cannot be written."""
    try:
        make_folder(_cache_file().parent)
        text = json.dumps({"machine": _machine(), "least_slowdown": known}, indent=2) + "\n"
        write_text(_cache_file(), text)
    except (OSError, EmuError):
        return
