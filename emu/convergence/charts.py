"""A picture for each event: the stages of each control plane as bars on a logarithmic axis.

bgp      ▄                       detected
         ████████████████        control plane done
         ████████████████        tables in force
         ████████████████├┤      traffic restored, with its range
static   ███
         1 us   1 ms    1 s
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from emu.convergence.events import Event
from emu.convergence.stages import Result, Spread
from emu.report.charts.chart import INCH, Chart
from emu.report.figure import Axis, Figure, Plot
from emu.report.palette import BAD, FAINT, INK, Legend, series_colour
from emu.units import format_time_ns

if TYPE_CHECKING:
    from emu.convergence.measure import Comparison

_STAGES = (
    ("detected_ns", "detected", series_colour(5)),
    ("decided_ns", "control plane done", series_colour(3)),
    ("in_force_ns", "tables in force", series_colour(1)),
    ("restored_ns", "traffic restored", series_colour(0)),
)
_TALL = 0.2
"""Of a bar, where planes are 1 apart."""
_LEAST_NS = 1_000.0
_MOST_NS = 1e10
_NEVER = Legend("never", BAD)


def charts(comparison: Comparison) -> Iterator[Chart]:
    """They have the same axis, so that events compare."""
    most_ns = max(_MOST_NS, 1.3 * max(map(_longest, comparison.results), default=0))
    for event in comparison.setup.events:
        yield _chart(event, [own for own in comparison.results if own.event is event], most_ns)


def _longest(result: Result) -> float:
    return max(max(result.spread(figure).known, default=0) for figure, _, _ in _STAGES)


def _chart(event: Event, results: Sequence[Result], most_ns: float) -> Chart:
    labels = [(-float(place), own.plane.name) for place, own in enumerate(results)]
    figure = Figure(
        [""],
        INCH * 6.0,
        INCH * (0.7 + 0.62 * len(results)),
        _axis(most_ns),
        Axis(0.5 - len(results), 0.5, labels=labels, grid=False),
    )
    for place, own in enumerate(results):
        _draw(figure.plots[0], -place, own)
    any_never = any(own.spread("restored_ns").median is None for own in results)
    return Chart(
        title=event.value,
        svg=figure.svg(f"stages of each control plane after {event}"),
        legend=(
            *(Legend(name, colour) for _, name, colour in _STAGES),
            *([_NEVER] if any_never else []),
        ),
        caption="Medians of the times since the event, on a logarithmic axis; black lines are "
        "ranges. A stage without a bar is within 1 us, or never comes.",
    )


def _axis(most_ns: float) -> Axis:
    powers = [10.0**power for power in range(3, 14) if _LEAST_NS <= 10**power <= most_ns]
    labels = [(value, format_time_ns(value)) for value in powers]
    return Axis(_LEAST_NS, most_ns, "time since the event", labels=labels, is_log=True)


def _draw(plot: Plot, place: float, result: Result) -> None:
    for number, (figure, _, colour) in enumerate(_STAGES):
        middle = place + _TALL * (1.5 - number)
        spread = result.spread(figure)
        if spread.median is None and figure == "restored_ns":
            plot.bar((plot.x.low, plot.x.high), middle, _TALL, BAD)
        elif spread.median:
            plot.bar((plot.x.low, spread.median), middle, _TALL, colour)
            _range(plot, middle, spread)
        elif figure == "restored_ns":
            plot.text(plot.x.low, middle, " nothing lost", FAINT)


def _range(plot: Plot, middle: float, spread: Spread) -> None:
    low, high = min(spread.known), max(spread.known)
    if low < high:
        plot.line([max(low, plot.x.low), high], [middle, middle], INK, thick=1.6)
