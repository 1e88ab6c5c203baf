"""The results of a plan: a table for the terminal, plan.json and plan.md."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from emu.output_dir import write_text, writing_into
from emu.plans.case import Result, Verdict
from emu.plans.plan import Plan
from emu.report.json_text import indented_json
from emu.report.markdown import plain

_COLUMNS = ("case", "criterion", "tolerance", "measured", "verdict")
_NARROWEST = 100


def printed(results: Sequence[Result], width: int) -> str:
    """The table as text, at most `width` columns wide where that is legible."""
    table = Table(*_COLUMNS, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for result in results:
        table.add_row(*_row(result))
    text = io.StringIO()
    console = Console(file=text, width=max(_NARROWEST, width), markup=False, highlight=False)
    console.print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def counted(results: Sequence[Result]) -> str:
    """`12 passed, 1 skipped`."""
    number = Counter(result.verdict for result in results)
    return ", ".join(f"{number[one.value]} {one.value}" for one in Verdict if number[one.value])


def write_plan(
    folder: Path, plan: Plan, fabric: Mapping[str, str], results: Sequence[Result]
) -> None:
    """Writes plan.json and plan.md. `fabric`: what it ran on. Raises EmuError."""
    option = "--emu-plan-out"
    with writing_into(folder, option):
        write_text(folder / "plan.json", _json(plan, fabric, results))
        write_text(folder / "plan.md", _page(plan, fabric, results))


def _json(plan: Plan, fabric: Mapping[str, str], results: Sequence[Result]) -> str:
    document = {
        "plan": plan.name,
        "title": plan.title,
        "source": plan.source,
        "scaling": plan.scaling,
        **fabric,
        "cases": [result.to_json() for result in results],
    }
    return indented_json(document) + "\n"


def _page(plan: Plan, fabric: Mapping[str, str], results: Sequence[Result]) -> str:
    about = {**fabric, "source": plan.source, "times": plan.scaling}
    lines = [f"# {plain(plan.title)}", "", f"{counted(results)}.", ""]
    lines += [f"- {key.replace('_', ' ')}: {plain(value)}" for key, value in about.items()]
    lines += ["", f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    lines += [f"| {' | '.join(map(plain, _row(result)))} |" for result in results]
    lines += ["", "## Set-up", ""]
    lines += [f"- {plain(result.id)}: {plain(result.set_up)}" for result in results]
    return "\n".join(lines) + "\n"


def _row(result: Result) -> tuple[str, ...]:
    case = f"{result.id} {result.priority} {result.title}"
    return case, result.criterion, result.tolerance, result.measured, result.verdict
