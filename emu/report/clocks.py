"""The emulator's own error: the same spec on the real and on the virtual clock, figure by figure.

The virtual clock is never late. Differences are therefore what the machine, the kernel
and Open vSwitch added on the real clock.

Some fabrics are chaotic. Under DCQCN, a nanosecond decides which packet is marked, and
the mark decides which sender slows down for a millisecond. A single pair of runs then
says little. With several seeds, the two runs of each seed are compared. The median
difference is the error, and the middle half of the seeds shows how reliable it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any

from emu.report.run_view import RunFacts, last_finish_ns
from emu.report.table import NOT_A_RESULT, NOT_APPLICABLE, Cell, Column, Table
from emu.units import format_time_ns

CLOCKS_SCHEMA = "emu.clocks/2"
_TOTALS = (
    "drops_lossless",
    "drops_lossy",
    "drops_other",
    "retransmitted_packets",
    "pause_frames",
    "ce_marked",
    "cnp",
    "credit_updates",
    "credit_wait_ns",
)


@dataclass(frozen=True)
class Difference:
    """One figure on both clocks, by seed. None when a run lacks it, or a flow did not finish."""

    figure: str
    unit: str
    """`ns`, or empty for a count."""
    real: tuple[int | None, ...]
    virtual: tuple[int | None, ...]

    @property
    def relative_errors(self) -> tuple[float, ...]:
        """The relative error of the real clock, by seed: 0.02 is 2 % more than virtual."""
        pairs = zip(self.real, self.virtual, strict=True)
        return tuple(real / virtual - 1 for real, virtual in pairs if real is not None and virtual)

    @property
    def relative(self) -> float | None:
        """The median error of the seeds."""
        return median(self.relative_errors) if self.relative_errors else None

    @property
    def quartiles(self) -> tuple[float, float] | None:
        """The quartiles of the error; None with fewer than two seeds."""
        if len(self.relative_errors) < 2:
            return None
        lower, _, upper = quantiles(self.relative_errors, n=4, method="inclusive")
        return lower, upper


@dataclass(frozen=True)
class BothClocks:
    """One spec, run on both clocks with the same seed."""

    real: RunFacts
    virtual: RunFacts


@dataclass(frozen=True)
class Seeds:
    """One spec, run on both clocks with one seed or several."""

    name: str
    runs: Sequence[BothClocks]

    @property
    def conclusive(self) -> Sequence[BothClocks]:
        """Seeds for which the machine kept up."""
        return [both for both in self.runs if both.real.conclusive]

    @property
    def differences(self) -> tuple[Difference, ...]:
        """All figures but those that are zero in every run. Empty where no run is a result."""
        everything = (*self._completions(), *self._totals()) if self.conclusive else ()
        return tuple(found for found in everything if any((*found.real, *found.virtual)))

    def _completions(self) -> Iterator[Difference]:
        yield self._each("last completion", "ns", lambda run: run.last_finish_ns)
        for name in self.runs[0].real.traffic:
            yield self._each(
                f"{name}: last completion", "ns", lambda run, n=name: last_finish_ns(run.traffic[n])
            )

    def _totals(self) -> Iterator[Difference]:
        for name in _TOTALS:
            unit = "ns" if name.endswith("_ns") else ""
            yield self._each(name, unit, lambda run, n=name: run.total(n))

    def _each(self, figure: str, unit: str, of: Callable[..., int | None]) -> Difference:
        real = tuple(of(both.real) for both in self.conclusive)
        return Difference(figure, unit, real, tuple(of(both.virtual) for both in self.conclusive))


def clocks_table(seeds: Seeds) -> Table:
    """Both clocks side by side with the error: medians over all seeds."""
    several = len(seeds.runs) > 1
    names = ("figure", "real", "virtual", "difference", *(["middle half"] if several else []))
    return Table(
        title=f"{seeds.name}: the real and the virtual clock"
        + (f", {len(seeds.runs)} seeds" if several else ""),
        columns=tuple(Column(name, numeric=name != "figure") for name in names),
        rows=tuple(_row(difference, several) for difference in seeds.differences),
        note=_left_out(seeds),
    )


def clocks_document(specs: Sequence[Seeds]) -> Mapping[str, Any]:
    """The comparison as data for programs, seed by seed."""
    return {
        "schema": CLOCKS_SCHEMA,
        "runs": {
            seeds.name: {
                "fidelity": [both.real.summary["fidelity"] for both in seeds.runs],
                "figures": [_entry(found) for found in seeds.differences],
            }
            for seeds in specs
        },
    }


def _entry(found: Difference) -> dict[str, Any]:
    apart = {"relative": found.relative, "middle_half": found.quartiles}
    return asdict(found) | apart


def _left_out(seeds: Seeds) -> str:
    late = len(seeds.runs) - len(seeds.conclusive)
    if not late:
        return ""
    which = "" if len(seeds.runs) == 1 else f" with {late} of {len(seeds.runs)} seeds"
    return f"{NOT_A_RESULT.text} left out: the machine did not keep up{which}"


def _row(found: Difference, several: bool) -> tuple[Cell, ...]:
    apart = NOT_APPLICABLE if found.relative is None else Cell(f"{found.relative:+.1%}")
    cells = Cell(found.figure), _median(found, found.real), _median(found, found.virtual), apart
    return (*cells, _spread(found)) if several else cells


def _spread(found: Difference) -> Cell:
    if found.quartiles is None:
        return NOT_APPLICABLE
    lower, upper = found.quartiles
    return Cell(f"{lower:+.1%} to {upper:+.1%}")


def _median(found: Difference, values: Sequence[int | None]) -> Cell:
    known = [value for value in values if value is not None]
    if not known:
        return NOT_APPLICABLE
    value = round(median(known))
    return Cell(format_time_ns(value) if found.unit == "ns" else f"{value:,}")
