"""The emulator's own error: the same spec on the real and on the virtual clock, figure by figure.

The virtual clock is never late, so what differs is what the machine, the kernel
and Open vSwitch added to the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from emu.report.facts import RunFacts, last_finish_ns
from emu.report.table import NOT_A_RESULT, NOT_APPLICABLE, Cell, Column, Table
from emu.units import format_time_ns

CLOCKS_SCHEMA = "emu.clocks/1"
_TOTALS = (
    "drops_lossless",
    "drops_lossy",
    "retransmitted_packets",
    "pause_frames",
    "ce_marked",
    "cnp",
    "credit_updates",
    "credit_wait_ns",
)


@dataclass(frozen=True)
class Difference:
    """One figure on both clocks. None: there is no such number, a flow never finished."""

    figure: str
    unit: str
    """`ns` or empty for a count."""
    real: int | None
    virtual: int | None

    @property
    def relative(self) -> float | None:
        """How far the real clock is off: 0.02 is two per cent more than on the virtual one."""
        if self.real is None or not self.virtual:
            return None
        return self.real / self.virtual - 1


@dataclass(frozen=True)
class BothClocks:
    """One spec, run on both."""

    real: RunFacts
    virtual: RunFacts

    @property
    def differences(self) -> tuple[Difference, ...]:
        """All figures that are not zero on both clocks."""
        everything = (*self._completions(), *self._totals())
        return tuple(found for found in everything if found.real or found.virtual)

    def _completions(self) -> Iterator[Difference]:
        yield self._each("last completion", "ns", lambda run: run.last_finish_ns)
        for name in self.real.traffic:
            yield self._each(
                f"{name}: last flow over", "ns", lambda run, n=name: last_finish_ns(run.traffic[n])
            )

    def _totals(self) -> Iterator[Difference]:
        for name in _TOTALS:
            unit = "ns" if name.endswith("_ns") else ""
            yield self._each(name, unit, lambda run, n=name: run.total(n))

    def _each(self, figure: str, unit: str, of: Callable[..., int | None]) -> Difference:
        return Difference(figure, unit, of(self.real), of(self.virtual))


def clocks_table(both: BothClocks) -> Table:
    """Real and virtual side by side, and how far they are apart."""
    names = ("figure", "real", "virtual", "difference")
    return Table(
        title=f"{both.real.name}: the two clocks",
        columns=tuple(Column(name, numeric=name != "figure") for name in names),
        rows=tuple(_row(both, difference) for difference in both.differences),
        note="" if both.real.conclusive else f"{NOT_A_RESULT.text} the machine did not keep up",
    )


def clocks_document(runs: Sequence[BothClocks]) -> Mapping[str, Any]:
    """The same for programs."""
    return {
        "schema": CLOCKS_SCHEMA,
        "runs": {
            both.real.name: {
                "fidelity": both.real.summary["fidelity"],
                "figures": [
                    asdict(found) | {"relative": found.relative} for found in both.differences
                ],
            }
            for both in runs
        },
    }


def _row(both: BothClocks, found: Difference) -> tuple[Cell, ...]:
    virtual = _value(found, found.virtual)
    if not both.real.conclusive:
        return Cell(found.figure), NOT_A_RESULT, virtual, NOT_A_RESULT
    apart = NOT_APPLICABLE if found.relative is None else Cell(f"{found.relative:+.1%}")
    return Cell(found.figure), _value(found, found.real), virtual, apart


def _value(found: Difference, value: int | None) -> Cell:
    if value is None:
        return NOT_APPLICABLE
    return Cell(format_time_ns(value) if found.unit == "ns" else f"{value:,}")
