"""Benchmark reports for scripts, after the IETF BMWG drafts for AI fabrics (`emu.bmwg`)."""

from __future__ import annotations

import io
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from emu.bmwg.document import document
from emu.bmwg.iterations import Bench
from emu.bmwg.page import bench_page
from emu.bmwg.run import run_bench, specs_of
from emu.bmwg.write import PAGE_FILE, print_bench, write_bench
from emu.clocks import AUTO
from emu.errors import UsageError
from emu.models import PACKETS
from emu.scripting.runs import framed, runner_for
from emu.scripting.spec import Settings, given
from emu.spec.scenario import Spec

if TYPE_CHECKING:
    import pandas as pd

MOST_SEEDS = 1000


class BenchReport:
    """The benchmark report of one spec. Tables are pandas frames."""

    def __init__(self, bench: Bench, folder: Path, kept: TemporaryDirectory[str] | None) -> None:
        """`kept`: removes the folder together with the report."""
        self._bench = bench
        self._kept = kept
        self.folder = folder
        """The folder of the report: page, JSON document, and a folder for each run."""

    @cached_property
    def document(self) -> dict[str, Any]:
        """The whole report as data: that of `emu schema bench-report`."""
        return dict(document(self._bench))

    @cached_property
    def figures(self) -> pd.DataFrame:
        """A row for each figure: `kpi`, `of` (empty for the fabric), `unit`, `mean`, `low`, `high`,
        `cv`, `mark` and `detail`."""
        import pandas as pd

        columns = ("kpi", "of", "unit", "mean", "low", "high", "cv", "mark", "detail")
        frame = pd.DataFrame(self.document["figures"], columns=columns)
        return frame.astype(dict.fromkeys(("mean", "low", "high", "cv"), float))

    @cached_property
    def undefined(self) -> pd.DataFrame:
        """A row for each KPI without a value: `kpi`, `of`, `reason` and `seeds`."""
        import pandas as pd

        columns = ("kpi", "of", "reason", "seeds")
        return pd.DataFrame(self.document["undefined"], columns=columns)

    def mean(self, kpi: str, of: str = "") -> float:
        """The mean of a figure over the iterations, in the unit of the KPI. `of`: a traffic entry,
        a port, a switch; empty for the fabric. Raises UsageError if there is no such figure."""
        for one in self._bench.statistics:
            if (one.kpi.key, one.of) == (kpi, of):
                return one.interval.mean
        reasons = [one.reason for one in self._bench.missing if (one.kpi.key, one.of) == (kpi, of)]
        why = f": {reasons[0]}" if reasons else "; `figures` has those that there are"
        raise UsageError(f"{kpi} of {of or 'the fabric'}: has no value{why}")

    def page(self) -> Path:
        """The page, one HTML file that needs no network."""
        return self.folder / PAGE_FILE

    def __str__(self) -> str:
        """The report as `emu bench-report` prints it."""
        text = io.StringIO()
        print_bench(self._bench, {}, text)
        return text.getvalue()

    def __repr__(self) -> str:
        iterations, figures = len(self._bench.iterations), len(self._bench.statistics)
        return f"<emu.BenchReport {self._bench.name}: {figures} figures, {iterations} iterations>"

    def _repr_html_(self) -> str:
        """For Jupyter: the page, in a frame of its own so that its style stays there."""
        return framed(bench_page(self._bench))


def bench_report(
    spec: Spec | str | Path,
    *,
    seeds: int = 1,
    interference: bool = False,
    clock: str = AUTO,
    set: Settings | None = None,
    threads: int | None = None,
    out: str | Path | None = None,
    quiet: bool = True,
) -> BenchReport:
    """Runs a spec, or the spec of a file, and reports the KPIs of the BMWG drafts.

    seeds         iterations: the spec's seed and those after it
    interference  also run each entry of `traffic:` without the others
    clock         `exact`, `virtual` or `real`; `auto` chooses as `emu run` does
    set           keys with dots and their values: {"switches.ecn.kmin": "50KB"}
    threads       of the virtual clock
    out           the folder for the report and its runs; without it, a folder that goes with the
                  BenchReport
    quiet         no progress on stderr

    Raises SpecError with all mistakes of the spec; UsageError, HostError and FabricError as `emu
    bench-report` prints them.
    """
    wanted = given(spec, set)
    if not (type(seeds) is int and 1 <= seeds <= MOST_SEEDS):
        raise UsageError(f"seeds: {seeds!r} is not a whole number from 1 to {MOST_SEEDS}")
    if out == "":
        raise UsageError("out: is empty; name a folder, or leave it out")
    specs = specs_of(wanted, seeds, interference=interference)
    every = [one for own in specs for one in own.every]
    runner = runner_for(every, PACKETS.name, clock, threads)
    kept = TemporaryDirectory(prefix="emu-bench-") if out is None else None
    folder = Path(kept.name if kept else out or "")
    bench = run_bench(specs, runner, folder, quiet=quiet)
    write_bench(bench, folder)
    return BenchReport(bench, folder, kept)
