"""The page of a measurement, one HTML file that needs no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.models import MODELS, PACKETS
from emu.report.palette import COLOURS
from emu.report.templating import environment
from emu.sensitivities.charts import charts
from emu.sensitivities.tables import (
    cost_table,
    left_out_table,
    sentences,
    shared_table,
    summary_table,
)

if TYPE_CHECKING:
    from emu.sensitivities.measure import Measured


def page(measured: Measured) -> str:
    left_out = [left_out_table(own) for own in measured.results]
    return (
        environment()
        .get_template("sensitivity.html.j2")
        .render(
            title=measured.setup.name,
            sentences=list(sentences(measured)),
            summary=summary_table(measured),
            shared=shared_table(measured),
            charts=list(charts(measured)),
            costs=[cost_table(own) for own in measured.results],
            left_out=[table for table in left_out if table.rows],
            model=MODELS[PACKETS.name].how,
            colours=COLOURS,
        )
    )
