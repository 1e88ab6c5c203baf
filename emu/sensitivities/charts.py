"""The picture of a side: a bar for each change, as long as what it costs.

link fails              ████████████████████████├─┤
switches.ecn.kmin x 2   ███├┤
CNPs ignored            ░                              no difference shown
                        1 %      10 %      100 %       logarithmic
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from emu.report.charts.chart import INCH, Chart, left_out
from emu.report.figure import Axis, Figure, Plot
from emu.report.palette import BAD, INK, Legend, series_colour
from emu.sensitivities.change import Kind
from emu.sensitivities.costs import Cost
from emu.sensitivities.tables import LIMIT

if TYPE_CHECKING:
    from emu.sensitivities.measure import Measured, Result

_MOST_BARS = 24
_LEAST, _MOST = 0.01, 1.0
"""The shares between which the axis reaches at least."""
_HALF, _WHOLE = INCH * 6.0, INCH * 12.6
_COLOURS = {
    Kind.SETTING: series_colour(0),
    Kind.MISTAKE: series_colour(1),
    Kind.FAILURE: series_colour(3),  # not green, which says that something is good
}


def charts(measured: Measured) -> Iterator[Chart]:
    """A picture for each side that has changes with a cost; two sides are side by side."""
    for own in measured.results:
        raising = [cost for cost in own.costs if cost.amount > _LEAST]
        if raising:
            yield _bars(own, raising, is_wide=len(measured.results) == 1)


def _bars(own: Result, costs: Sequence[Cost], *, is_wide: bool) -> Chart:
    shown = costs[:_MOST_BARS]
    labels = [(-float(place), _short(cost.change.name)) for place, cost in enumerate(shown)]
    figure = Figure(
        [""],
        _WHOLE if is_wide else _HALF,
        INCH * (0.7 + 0.22 * len(shown)),
        _axis(100 * _LEAST, 100 * _longest(shown)),
        Axis(0.5 - len(shown), 0.5, labels=labels, grid=False),
    )
    for place, cost in enumerate(shown):
        _draw(figure.plots[0], -place, cost)
    kinds = dict.fromkeys(cost.change.kind for cost in shown if not cost.stuck)
    stuck = [Legend("flows do not finish", BAD)] if any(cost.stuck for cost in shown) else []
    return Chart(
        title=f"{own.side.name}: what each change costs",
        svg=figure.svg(f"what each change costs on {own.side.name}"),
        legend=(*stuck, *(Legend(kind.value, _COLOURS[kind]) for kind in kinds)),
        caption=f"The figure that a change raises most, in per cent on a logarithmic axis; black "
        f"lines are intervals, as far as they are above 1 %. Where only some seeds are hit, it is "
        f"the mean of those. Above {LIMIT} it counts as a cost. Changes that raise no figure "
        f"by 1 % are left out. {left_out('bars', len(shown), len(costs), 'the longest')}".strip(),
        is_wide=is_wide,
    )


def _short(name: str) -> str:
    """`ecn.kmin x 2`: a name with the last two parts of its key."""
    key, space, factor = name.partition(" ")
    return ".".join(key.split(".")[-2:]) + space + factor


def _axis(low: float, high: float) -> Axis:
    powers = [10.0**n for n in range(6) if low <= 10**n <= high]
    labels = [(n, f"{n:g}" if n < 1000 else f"{n / 1000:g}k") for n in powers]
    return Axis(low, high, "cost (%)", labels=labels, is_log=True)


def _longest(costs: Sequence[Cost]) -> float:
    worst = [cost.worst for cost in costs if cost.worst]
    ends = [max(own.shown, own.share.high or 0.0) for own in worst if own.share]
    return 1.1 * max([_MOST, *ends])


def _draw(plot: Plot, place: float, cost: Cost) -> None:
    if cost.stuck:
        plot.bar((plot.x.low, plot.x.high), place, 0.6, BAD)
        return
    assert cost.worst is not None
    assert cost.worst.share is not None
    share = cost.worst.share
    plot.bar((plot.x.low, 100 * cost.worst.shown), place, 0.6, _COLOURS[cost.change.kind])
    if share.low is not None and share.high is not None and not cost.worst.in_some:
        low = max(100 * share.low, plot.x.low)
        plot.line([low, 100 * share.high], [place, place], INK, thick=1.6)
