"""Sweeps for scripts: one spec at many points, and what a script learns from them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from emu.errors import UsageError
from emu.models import MODELS, PACKETS
from emu.scripting.spec import Settings, given, plain
from emu.spec.diagnostic import unknown_name
from emu.spec.scenario import Spec
from emu.streams import print_note

if TYPE_CHECKING:
    import pandas as pd

    from emu.sweeps.sweep import Finished
    from emu.sweeps.values import Axis


class Sweep:
    """The runs of a sweep. Tables are pandas frames whose columns end in the unit."""

    def __init__(
        self, finished: Finished, folder: Path, kept: TemporaryDirectory[str] | None
    ) -> None:
        """`kept`: removes the folder together with the sweep."""
        self._finished = finished
        self._kept = kept
        self.folder = folder
        """The folder of the sweep: `runs.parquet`, the page, and a file for each run."""

    @property
    def runs(self) -> pd.DataFrame:
        """A row for each run: the point (`point`, `variant`, the varied keys), its `seed`, and its
        figures; `error` is empty unless the run failed."""
        return self._finished.view.rows

    @property
    def failed(self) -> pd.DataFrame:
        """The rows of the runs that failed."""
        return self._finished.view.failed

    @cached_property
    def flows(self) -> pd.DataFrame:
        """A row for each flow of each run (`tables=["flows"]`); `key` is that of the run."""
        return self._table("flows")

    @cached_property
    def ports(self) -> pd.DataFrame:
        """The counters of each port in each run (`tables=["ports"]`); `key` is that of the run."""
        return self._table("ports")

    def mean(self, by: str | Sequence[str] | None = None) -> pd.DataFrame:
        """The mean of each figure over the runs that have the same values in the columns `by`,
        by default over the seeds of each point.

        Each figure has two more columns, `_low` and `_high`: the ends of its interval
        (`emu.measure.bootstrap`), NaN for a single run. `runs` is the number of runs. Raises
        UsageError for a column that there is not.
        """
        from emu.sweeps.statistics import means, result_columns

        view = self._finished.view
        chosen = view.by if by is None else [by] if isinstance(by, str) else list(by)
        known = [str(name) for name in self.runs.columns]
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise UsageError("\n".join(unknown_name("column", name, known) for name in unknown))
        varied = [column.name for column in view.made.columns]
        figures = [name for name in result_columns(view.good, varied) if name not in chosen]
        return means(view.good, figures, chosen)

    def page(self) -> Path:
        """The page with the pictures, one HTML file that needs no network."""
        return self._finished.files["page"]

    def __repr__(self) -> str:
        view = self._finished.view
        return (
            f"<emu.Sweep {view.made.name}: {len(view.rows)} runs, {len(view.failed)} failed, "
            f"{view.computed} computed now>"
        )

    def _repr_html_(self) -> str:
        """For Jupyter: the page, in a frame of its own so that its style stays there."""
        from emu.scripting.runs import framed

        return framed(self.page().read_text(encoding="utf-8"))

    def _table(self, name: str) -> pd.DataFrame:
        import pandas as pd

        path = self._finished.files.get(name)
        if path is None:
            raise UsageError(
                f"{name}: the sweep has no such table; ask for it by tables=[{name!r}]"
            )
        return pd.read_parquet(path)


def sweep(
    spec: Spec | str | Path,
    vary: Mapping[str, Any] | None = None,
    *,
    seeds: int | Sequence[int] = 1,
    variants: Sequence[str] = (),
    random: int | None = None,
    points: str | Path | Iterable[Settings] | None = None,
    set: Settings | None = None,
    model: str = PACKETS.name,
    tables: Sequence[str] = (),
    results: Sequence[str] = (),
    workers: int | None = None,
    scheduler: str | None = None,
    out: str | Path | None = None,
    quiet: bool = True,
) -> Sweep:
    """Runs a spec, or the spec of a file, at many points, on the virtual clock.

    vary       keys with dots and their values: a list, or text as `20KB..400KB/5`
    seeds      a number of seeds (the spec's and those after it), or a list of seeds
    variants   names of the spec's `compare:`; without them, the spec itself
    random     so many points of a Latin hypercube instead of the grid of all values
    points     mappings of keys to values, or a CSV file with keys in its first line
    set        keys that are the same for all points
    model      `packets` or `flow`
    tables     `flows` and `ports`: a further table of each
    results    columns of figures that the page shows; of the first two also a Pareto front
    workers    processes on this machine; as many as it has cores unless given
    scheduler  the address of a Dask cluster instead
    out        the folder of the results; runs that are in it are not done again. Without it, a
               folder that goes with the Sweep
    quiet      no progress on stderr

    A point with an error is a row in `failed`. Raises SpecError with all mistakes if no point is
    valid; UsageError for parameters that exclude each other; HostError if `emu[sweep]` is not
    installed.
    """
    from emu.sweeps.needs import need_packages

    need_packages()
    from emu.sweeps.request import Request, plan_of
    from emu.sweeps.sweep import run_sweep

    if model not in MODELS:
        raise UsageError(f"model: {unknown_name('model', str(model), list(MODELS))}")
    if out == "":
        raise UsageError("out: is empty; name a folder, or leave it out")
    request = Request(
        given(spec, set),
        axes=_axes(vary or {}),
        points=_points(points),
        random=random,
        variants=tuple(variants),
        seeds=seeds if isinstance(seeds, int) else tuple(seeds),
        model=model,
        tables=tuple(tables),
        workers=workers,
        scheduler=scheduler,
        option="vary",
    )
    made = plan_of(request)
    kept = TemporaryDirectory(prefix="emu-sweep-") if out is None else None
    folder = Path(kept.name if kept else out or "")
    finished = run_sweep(
        made,
        folder,
        workers=workers,
        scheduler=scheduler,
        results=tuple(results),
        stream=None if quiet else sys.stderr,
        on_note=print_note,
    )
    if finished.stop is not None:
        raise finished.stop
    return Sweep(finished, folder, kept)


def _axes(vary: Mapping[str, Any]) -> list[Axis]:
    from emu.sweeps.values import Axis, values_of

    if not isinstance(vary, Mapping):
        raise UsageError(
            'vary: is no mapping; write it like {"switches.ecn.kmin": ["20KB", "50KB"]}'
        )
    return [
        Axis(
            key,
            values_of(values, f"vary {key}") if isinstance(values, str) else tuple(plain(values)),
        )
        for key, values in vary.items()
    ]


def _points(points: str | Path | Iterable[Settings] | None) -> list[Settings] | None:
    from emu.sweeps.points import in_file

    if points is None:
        return None
    if isinstance(points, str | Path):
        return in_file(Path(points))
    return [plain(point) for point in points]
