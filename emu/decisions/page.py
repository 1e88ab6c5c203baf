"""The page of a decision, one HTML file that needs no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.decisions.charts import charts
from emu.decisions.reasons import reasons
from emu.decisions.tables import comparison, costs, failures, growth, refused
from emu.decisions.turns import changes
from emu.models import MODELS, PACKETS
from emu.report.palette import COLOURS
from emu.report.templating import environment

if TYPE_CHECKING:
    from emu.decisions.decide import Decided


def page(decided: Decided) -> str:
    return (
        environment()
        .get_template("decide.html.j2")
        .render(
            title=decided.setup.name,
            badge="none fits" if decided.choice is None else decided.choice.best.name,
            is_good=decided.choice is not None,
            reasons=list(reasons(decided)),
            changes=list(changes(decided)),
            comparison=comparison(decided),
            charts=list(charts(decided)),
            tables=[failures(decided), growth(decided), costs(decided), refused(decided)],
            model=MODELS[PACKETS.name].how,
            colours=COLOURS,
        )
    )
