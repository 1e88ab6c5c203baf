"""`python -m emu.bench [--quick] [--json FILE] [FIGURE ...]`: see the package."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import click

from emu.bench import (
    clock,
    exact,
    fat_tree,
    flow_model,
    history,
    hop,
    lab,
    large,
    memory,
    parts,
    relay,
    slowdown,
    whole,
)
from emu.bench.machine import machine
from emu.bench.row import Row
from emu.bench.table import document, table
from emu.errors import EmuError
from emu.output_dir import write_text, writing_into

Measure = Callable[..., list[Row]]

FIGURES: dict[str, Measure] = {
    "relay": relay.measure,
    "hop": hop.measure,
    "exact": exact.measure,
    "clock": clock.measure,
    "growth": clock.measure_growth,
    "parts": parts.measure,
    "lab": lab.measure,
    "memory": memory.measure,
    "slowdown": slowdown.measure,
    "fat-tree": fat_tree.measure,
    "large": large.measure,
    "whole": whole.measure,
    "flow": flow_model.measure,
}
NOT_QUICK = ("slowdown", "fat-tree", "large")


@click.command()
@click.option("--quick", is_flag=True, help="Less than a minute: fewer turns, smaller fabrics.")
@click.option(
    "--json",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("out/bench.json"),
    show_default=True,
    help="Where the figures are written, with what they were made from.",
)
@click.option(
    "--history",
    "history_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Earlier runs, which this run is compared with and added to.  "
    "[default: bench-history.jsonl in the user's cache folder]",
)
@click.argument("figures", nargs=-1, type=click.Choice(list(FIGURES)))
def main(quick: bool, file: Path, history_file: Path | None, figures: tuple[str, ...]) -> None:
    """Measure this machine's speed, side by side with baselines; all FIGURES unless named."""
    here = machine()
    history_file = history_file or history.history_file()
    chosen = figures or [name for name in FIGURES if not (quick and name in NOT_QUICK)]
    rows = [row for name in chosen for row in _measure(name, quick)]
    record = history.entry(here, rows, quick=quick)
    click.echo(table(history.compared(history_file, record, rows)))
    with writing_into(file.parent, "--json"):
        write_text(file, json.dumps(document(here, rows, quick=quick), indent=2) + "\n")
    with writing_into(history_file.parent, "--history"):
        history.append(history_file, record)
    click.echo(f"written to {file}; history in {history_file}", err=True)


def _measure(name: str, quick: bool) -> list[Row]:
    """A figure's rows; if it cannot be measured, one row with the reason."""
    began = time.monotonic()
    try:
        return FIGURES[name](quick=quick)
    except (EmuError, OSError) as error:
        return [Row(name, "", note=str(error))]
    finally:
        click.echo(f"{name}: {time.monotonic() - began:.0f} s", err=True)


if __name__ == "__main__":
    main()
