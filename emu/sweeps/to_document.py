"""A sweep as its document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import emu
from emu.measure.interval_entries import intervals_entry
from emu.report.run_figures import unit_of
from emu.sweeps.document import SWEEP_SCHEMA, Sweep
from emu.sweeps.statistics import result_columns

if TYPE_CHECKING:
    from emu.sweeps.page import View


def document(view: View) -> Sweep:
    """What was varied, and the units of the columns."""
    names = [column.name for column in view.made.columns]
    return {
        "schema": SWEEP_SCHEMA,
        "name": view.made.name,
        "version": emu.__version__,
        "model": view.made.model,
        "runs": len(view.made.runs),
        "computed": view.computed,
        "failed": len(view.failed),
        "missing": len(view.made.runs) - len(view.rows),
        "varied": [
            {"key": column.key, "column": column.name, "unit": column.unit}
            for column in view.made.columns
        ],
        "variants": [name for name in view.made.bases if name],
        "seeds": sorted({run.seed for run in view.made.runs}),
        "results": {name: unit_of(name) for name in result_columns(view.rows, names)},
        "intervals": intervals_entry(),
    }
