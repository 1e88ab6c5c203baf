"""The same specs by both models, with packets and by flows: figure by figure, and the difference.

Only figures that both models know are compared. A difference is the error of the flow model, where
the packet model is right: +5 % means that the flow model is 5 % higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emu.report.run_view import RunFacts, last_finish_ns
from emu.report.table import NOT_APPLICABLE, UNFINISHED, Cell, Column, Table
from emu.units import format_rate, format_time_ns

MODELS_SCHEMA = "emu.models/1"


@dataclass(frozen=True)
class Figure:
    """One figure by both models; None: unfinished."""

    name: str
    unit: str
    """`ns` or `bps`."""
    packets: float | None
    flow: float | None

    @property
    def relative(self) -> float | None:
        """The error of the flow model: 0.05 is 5 % more than with packets."""
        if self.packets is None or self.flow is None or not self.packets:
            return None
        return self.flow / self.packets - 1


@dataclass(frozen=True)
class BothModels:
    """One spec, run by both models."""

    name: str
    packets: RunFacts
    flow: RunFacts

    @property
    def times_faster(self) -> float:
        """How many times less wall-clock time the flow model took."""
        took = self.flow.recording.wall_seconds
        return self.packets.recording.wall_seconds / took if took else 0.0

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures that both models know."""
        return tuple(self._figures())

    def _figures(self) -> Iterator[Figure]:
        one, other = self.packets, self.flow
        yield Figure("last completion", "ns", one.last_finish_ns, other.last_finish_ns)
        for name in one.traffic:
            if name not in other.traffic:
                continue
            ends = last_finish_ns(one.traffic[name]), last_finish_ns(other.traffic[name])
            yield Figure(f"{name}: last completion", "ns", *ends)
            rates = one.median_goodput_bps(name), other.median_goodput_bps(name)
            yield Figure(f"{name}: median goodput", "bps", *rates)
        for job, same in zip(one.recording.jobs, other.recording.jobs, strict=True):
            yield Figure(f"{job.name}: time", "ns", job.took_ns, same.took_ns)
        for step, same_step in zip(one.recording.steps, other.recording.steps, strict=True):
            yield Figure(f"{step.name}: step", "ns", step.took_ns, same_step.took_ns)
            exposed = step.exposed_ns, same_step.exposed_ns
            yield Figure(f"{step.name}: exposed communication", "ns", *exposed)
        latencies = {latency.traffic: latency for latency in other.latencies}
        for latency in one.latencies:
            same_latency = latencies.get(latency.traffic)
            if same_latency is not None:
                name = f"{latency.traffic}: latency"
                yield Figure(f"{name}, 50 %", "ns", latency.p50_ns, same_latency.p50_ns)
                yield Figure(f"{name}, 99 %", "ns", latency.p99_ns, same_latency.p99_ns)


def models_table(specs: Sequence[BothModels]) -> Table:
    """The figures of all specs, side by side."""
    named = len(specs) > 1
    names = (*(["spec"] if named else []), "figure", "packets", "flow", "difference")
    return Table(
        title="The two models",
        columns=tuple(Column(name, numeric=name not in ("spec", "figure")) for name in names),
        rows=tuple(
            (*([Cell(both.name)] if named else []), *_row(figure))
            for both in specs
            for figure in both.figures
        ),
        note=" ".join(map(_speed, specs)),
    )


def models_document(specs: Sequence[BothModels]) -> Mapping[str, Any]:
    """The comparison as data for programs."""
    return {
        "schema": MODELS_SCHEMA,
        "runs": {
            both.name: {
                "wall_seconds": {
                    "packets": both.packets.recording.wall_seconds,
                    "flow": both.flow.recording.wall_seconds,
                },
                "figures": [
                    vars(figure) | {"relative": figure.relative} for figure in both.figures
                ],
                "not_known": list(both.flow.recording.not_known),
                "warnings": list(both.flow.recording.warnings),
            }
            for both in specs
        },
    }


def _speed(both: BothModels) -> str:
    with_packets, by_flows = (run.recording.wall_seconds for run in (both.packets, both.flow))
    return (
        f"{both.name}: {with_packets:.3g} s with packets, {by_flows:.3g} s by flows, "
        f"{both.times_faster:.3g} times faster."
    )


def _row(figure: Figure) -> tuple[Cell, ...]:
    apart = NOT_APPLICABLE if figure.relative is None else Cell(f"{figure.relative:+.1%}")
    return (
        Cell(figure.name),
        _value(figure.packets, figure.unit),
        _value(figure.flow, figure.unit),
        apart,
    )


def _value(value: float | None, unit: str) -> Cell:
    if value is None:
        return UNFINISHED
    return Cell(format_time_ns(round(value)) if unit == "ns" else format_rate(value))
