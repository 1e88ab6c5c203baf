"""The page of a measurement, one HTML file that needs no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.convergence.charts import charts
from emu.convergence.tables import (
    STAGES,
    event_table,
    mistakes_table,
    places_table,
    planes_table,
    sentences,
)
from emu.models import MODELS, PACKETS
from emu.report.palette import COLOURS
from emu.report.templating import environment

if TYPE_CHECKING:
    from emu.convergence.measure import Comparison


def page(comparison: Comparison) -> str:
    return (
        environment()
        .get_template("convergence.html.j2")
        .render(
            title=comparison.setup.name,
            sentences=list(sentences(comparison)),
            stages=STAGES,
            planes=planes_table(comparison),
            places=places_table(comparison),
            charts=list(charts(comparison)),
            events=[event_table(comparison, event) for event in comparison.setup.events],
            mistakes=mistakes_table(comparison) if comparison.mistakes else None,
            model=MODELS[PACKETS.name].how,
            colours=COLOURS,
        )
    )
