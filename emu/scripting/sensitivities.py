"""Sensitivity for scripts: what each setting, mistake and failure costs on a fabric."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from emu.errors import UsageError
from emu.scripting.spec import Settings, given
from emu.spec.scenario import Spec
from emu.streams import print_note

if TYPE_CHECKING:
    import pandas as pd

    from emu.sensitivities.measure import Measured


class Sensitivity:
    """What each change costs. Tables are pandas frames."""

    def __init__(
        self, measured: Measured, folder: Path, kept: TemporaryDirectory[str] | None
    ) -> None:
        """`kept`: removes the folder together with the measurement."""
        self._measured = measured
        self._kept = kept
        self.folder = folder
        """The folder of the measurement: the page, and a file for each run."""

    @cached_property
    def costs(self) -> pd.DataFrame:
        """A row for each change and each figure of times or slowdowns, the most expensive changes
        first: `fabric`, `change`, `kind` (`setting`, `mistake`, `failure`), `what` it is, and the
        `figure`. `share` is how much higher the figure is, as a share of its value without the
        change, `low` and `high` are the ends of its interval. It `differs` if that excludes 0,
        or if the figure more than doubles with some of the seeds. `stuck` is the number of seeds
        with flows that do not finish."""
        import pandas as pd

        rows = [
            {
                "fabric": result.side.name,
                "change": cost.change.name,
                "kind": cost.change.kind.value,
                "what": cost.change.what,
                "figure": effect.goal.name,
                "share": None if effect.share is None else effect.share.mean,
                "low": None if effect.share is None else effect.share.low,
                "high": None if effect.share is None else effect.share.high,
                "differs": effect.is_shown,
                "stuck": cost.stuck,
            }
            for result in self._measured.results
            for cost in result.costs
            for effect in cost.effects
        ]
        return pd.DataFrame(rows).astype({"share": float, "low": float, "high": float})

    @cached_property
    def counts(self) -> pd.DataFrame:
        """A row for each change and each count of pauses and losses: `fabric`, `change`, the
        `count` (a column that ends in its unit), its means `before` and `after`, and whether the
        difference `differs` from 0."""
        import pandas as pd

        rows = [
            {
                "fabric": result.side.name,
                "change": cost.change.name,
                "count": count.column,
                "before": None if count.before is None else count.before.mean,
                "after": None if count.after is None else count.after.mean,
                "differs": count.difference is not None and count.difference.excludes_zero,
            }
            for result in self._measured.results
            for cost in result.costs
            for count in cost.counts
        ]
        return pd.DataFrame(rows, columns=["fabric", "change", "count", *_MEANS])

    @cached_property
    def left_out(self) -> pd.DataFrame:
        """A row for each change that a fabric cannot have: `fabric`, `change`, `kind`, `reason`."""
        import pandas as pd

        rows = [
            (result.side.name, own.name, own.kind.value, own.reason)
            for result in self._measured.results
            for own in result.left_out
        ]
        return pd.DataFrame(rows, columns=["fabric", "change", "kind", "reason"])

    def page(self) -> Path:
        """The page with the pictures, one HTML file that needs no network."""
        return self._measured.files["page"]

    def __str__(self) -> str:
        """What was done, and the summary of each fabric."""
        from emu.sensitivities.tables import sentences

        return "\n".join(sentences(self._measured))

    def __repr__(self) -> str:
        found = ", ".join(
            f"{own.side.name}: {len(own.costly)} of {len(own.costs)} changes cost more"
            for own in self._measured.results
        )
        return f"<emu.Sensitivity {self._measured.setup.name}: {found}>"

    def _repr_html_(self) -> str:
        """For Jupyter: the page, in a frame of its own so that its style stays there."""
        from emu.scripting.runs import framed

        return framed(self.page().read_text(encoding="utf-8"))


_MEANS = ("before", "after", "differs")


def sensitivity(
    spec: Spec | str | Path,
    *,
    variants: Sequence[str] = (),
    fabrics: Sequence[str] = (),
    seeds: int = 5,
    set: Settings | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    out: str | Path | None = None,
    quiet: bool = True,
) -> Sensitivity:
    """Measures what each change of a spec's fabric, or of the spec of a file, costs: every tuned
    setting halved and doubled, the common mistakes, and failed links, one at a time.

    variants   names of the spec's `compare:`, each a fabric of its own
    fabrics    `roce` and `ib`: the spec on these fabrics, instead of variants
    seeds      of each change: the spec's seed and those after it; differences take 5
    set        keys that are the same for all changes
    workers    processes on this machine; as many as it has cores unless given
    scheduler  the address of a Dask cluster instead
    out        the folder of the results; runs that are in it are not done again. Without it, a
               folder that goes with the Sensitivity
    quiet      no progress on stderr

    Raises UsageError and SpecError with all mistakes; HostError if `emu[sweep]` is not installed;
    EmuError if the spec fails without any change.
    """
    from emu.sweeps.needs import need_packages

    need_packages()
    from emu.sensitivities.measure import run_sensitivity
    from emu.sensitivities.request import SensitivityRequest, setup_of

    if out == "":
        raise UsageError("out: is empty; name a folder, or leave it out")
    request = SensitivityRequest(
        given(spec, set),
        variants=_names(variants),
        fabrics=_names(fabrics),
        seeds=seeds,
        workers=workers,
        scheduler=scheduler,
        dashes="",
    )
    setup = setup_of(request)
    kept = TemporaryDirectory(prefix="emu-sensitivity-") if out is None else None
    folder = Path(kept.name if kept else out or "")
    stream = None if quiet else sys.stderr
    measured = run_sensitivity(setup, folder, pages=folder, stream=stream, on_note=print_note)
    if measured.stop is not None:
        raise measured.stop
    return Sensitivity(measured, folder, kept)


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
