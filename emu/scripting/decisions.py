"""Decisions for scripts: which fabric suits a cluster and its workload, and why."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType
from typing import TYPE_CHECKING, Any

from emu.decisions.names import ALL, CHANGES, USUAL
from emu.errors import UsageError
from emu.scripting.spec import Settings, given
from emu.spec.scenario import Spec
from emu.streams import print_note

if TYPE_CHECKING:
    import pandas as pd

    from emu.decisions.decide import Decided


class Decision:
    """A recommendation, and what it stands on. Tables are pandas frames."""

    def __init__(
        self, decided: Decided, folder: Path, kept: TemporaryDirectory[str] | None
    ) -> None:
        """`kept`: removes the folder together with the decision."""
        self._decided = decided
        self._kept = kept
        self.folder = folder
        """The folder of the decision: the page, and a file for each run."""

    @property
    def recommended(self) -> str | None:
        """The name of the fabric; None if on none all flows finish and all checks hold."""
        choice = self._decided.choice
        return None if choice is None else choice.best.name

    @property
    def reasons(self) -> list[str]:
        """The figures that the recommendation stands on, in sentences."""
        from emu.decisions.reasons import reasons

        return list(reasons(self._decided))

    @property
    def changes(self) -> list[str]:
        """What would change the recommendation, in sentences."""
        from emu.decisions.turns import changes

        return list(changes(self._decided))

    @cached_property
    def fabrics(self) -> pd.DataFrame:
        """A row for each fabric; its name is the index. `value` is the figure that decides, `low`
        and `high` are the ends of its interval, `behind` is the share by which it is worse than the
        best, and `differs` says whether this is shown. `fits`: all flows finish, and all checks
        hold. `changes` were measured, `costly` of them cost more than 5 %. `cost` and `watts` are
        known if there are prices."""
        import pandas as pd

        rows = []
        for own in self._decided.evidence.values():
            figure, behind = own.standing.figure, own.standing.behind
            rows.append(
                {
                    "fabric": own.name,
                    "value": None if figure is None else figure.mean,
                    "low": None if figure is None else figure.low,
                    "high": None if figure is None else figure.high,
                    "behind": None if behind is None else behind.mean,
                    "differs": behind is not None and behind.is_shown,
                    "fits": own.standing.fits,
                    "changes": len(own.result.costs),
                    "costly": len(own.result.costly),
                    "cost": None if own.bill is None else own.bill.total,
                    "watts": None if own.bill is None else own.bill.watts,
                }
            )
        numbers = dict.fromkeys(("value", "low", "high", "behind", "cost", "watts"), float)
        return pd.DataFrame(rows).astype(numbers).set_index("fabric")

    @cached_property
    def growth(self) -> pd.DataFrame:
        """A row for each further size and each fabric: `hosts`, `model`, `fabric`, `value` of the
        figure that decides, and whether it `fits`."""
        import pandas as pd

        rows = [
            {
                "hosts": grown.size.hosts,
                "model": grown.size.model,
                "fabric": name,
                "value": None if own.figure is None else own.figure.mean,
                "fits": own.fits,
            }
            for grown in self._decided.growth
            for name, own in grown.standings.items()
        ]
        return pd.DataFrame(rows, columns=["hosts", "model", "fabric", "value", "fits"])

    def spec(self, fabric: str) -> Spec:
        """The spec of a fabric, with its settings. Raises UsageError for a name that is none."""
        from emu.spec.diagnostic import unknown_name

        known = self._decided.evidence
        if fabric not in known:
            raise UsageError(unknown_name("fabric", fabric, list(known)))
        return known[fabric].candidate.spec

    def page(self) -> Path:
        """The page with the pictures, one HTML file that needs no network."""
        return self._decided.files["page"]

    def __str__(self) -> str:
        """The recommendation with its reasons, and what would change it."""
        from emu.decisions.reasons import sentences

        return "\n".join(sentences(self._decided))

    def __repr__(self) -> str:
        return f"<emu.Decision {self._decided.setup.name}: {self.recommended or 'none fits'}>"

    def _repr_html_(self) -> str:
        """For Jupyter: the page, in a frame of its own so that its style stays there."""
        from emu.scripting.runs import framed

        return framed(self.page().read_text(encoding="utf-8"))


def decide(
    spec: Spec | str | Path,
    fabrics: Sequence[str] = USUAL,
    *,
    rates: Sequence[str] = (),
    by: str | None = None,
    margin: float | str = 0.05,
    prices: str | Path | None = None,
    changes: str = ALL,
    grow: Mapping[str, Sequence[Any]] | bool = True,
    longest_run: str = "20s",
    vary: Mapping[str, Any] | Sequence[str] = (),
    trials: int = 24,
    seeds: int = 5,
    set: Settings | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    out: str | Path | None = None,
    quiet: bool = True,
) -> Decision:
    """Compares fabrics for the cluster and the workload of a spec, or of the spec of a file, and
    recommends one.

    fabrics      to choose from: `ib`, `roce-lossless`, `roce-tuned`, `roce-lossy`, `spec` (as it
                 is), and variants of the spec's `compare:`
    rates        of the cables to hosts, as `400Gbit`; all others keep their ratio to them
    by           the figure that decides, as `step.step_ns`
    margin       fabrics that are worse than the best by no more than this share are as good
    prices       the file with what parts cost
    changes      that are measured: `all`, `failures` or `none`
    grow         keys with a value for each larger size, as `{"topology.leaves": [8, 16]}`; True for
                 two and four times the hosts, False for no growth
    longest_run  a larger cluster whose run by packets is estimated to take longer is done by the
                 flow model
    vary         the keys that `roce-tuned` searches, as for `emu.tune`
    trials       of this search
    seeds        of each run, 5 at least: the spec's seed and those after it
    set          keys that are the same on all fabrics
    workers      processes on this machine; as many as it has cores unless given
    scheduler    the address of a Dask cluster instead
    out          the folder of the results; runs that are in it are not done again. Without it, a
                 folder that goes with the Decision
    quiet        no progress on stderr

    Raises UsageError and SpecError with all mistakes; HostError if `emu[sweep]` is not installed;
    EmuError if a fabric's run fails.
    """
    from emu.sweeps.needs import need_packages

    need_packages("a decision needs", ("optuna",))
    from emu.decisions.decide import run_decide
    from emu.decisions.request import (
        DecisionRequest,
        margin_of,
        rates_of,
        seconds_of,
        setup_of,
    )
    from emu.scripting.tuning import varied

    if out == "":
        raise UsageError("out: is empty; name a folder, or leave it out")
    _refuse_types(
        {
            "by": (by, (str, NoneType), "the name of a figure"),
            "changes": (changes, str, f"one of {', '.join(CHANGES)}"),
            "longest_run": (longest_run, str, "a time, as '20s'"),
            "prices": (prices, (str, Path, NoneType), "the name of a file"),
            "grow": (grow, (Mapping, bool), "keys with lists of values, True or False"),
            "seeds": (seeds, int, "a whole number"),
            "trials": (trials, int, "a whole number"),
            "workers": (workers, (int, NoneType), "a whole number"),
        }
    )
    request = DecisionRequest(
        given(spec, set),
        fabrics=_names(fabrics, "fabrics"),
        rates_bps=rates_of(_names(rates, "rates"), "rates"),
        by=by,
        margin=margin_of(margin, "margin"),
        prices=None if prices is None else Path(prices),
        changes=changes,
        grow=_sizes(grow),
        longest_seconds=seconds_of(longest_run, "longest_run"),
        vary=varied(vary) or None,
        trials=trials,
        seeds=seeds,
        workers=workers,
        scheduler=scheduler,
        dashes="",
    )
    setup = setup_of(request)
    kept = TemporaryDirectory(prefix="emu-decide-") if out is None else None
    folder = Path(kept.name if kept else out or "")
    decided = run_decide(setup, folder, stream=None if quiet else sys.stderr, on_note=print_note)
    return Decision(decided, folder, kept)


def _refuse_types(given: Mapping[str, tuple[object, Any, str]]) -> None:
    """Parameter -> its value, the types that it may have, and these in words. Raises UsageError
    with all mistakes."""
    mistakes = [
        f"{name}: must be {words}, not {value!r:.60}"
        for name, (value, types, words) in given.items()
        if not isinstance(value, types) or (isinstance(value, bool) and types is int)
    ]
    if mistakes:
        raise UsageError("\n".join(mistakes))


def _names(names: object, what: str) -> tuple[str, ...]:
    """Raises UsageError for what is no list of texts."""
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{what}: must be a list of texts, not {names!r:.60}")
    return tuple(names)


def _sizes(grow: Mapping[str, Sequence[Any]] | bool) -> Mapping[str, Sequence[Any]] | None:
    """Empty for the usual sizes, None for none. Raises UsageError."""
    if isinstance(grow, bool):
        return {} if grow else None
    for key, values in grow.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise UsageError(f"grow {key}: must be a list of values, not {values!r:.60}")
    return {str(key): values for key, values in grow.items()}
