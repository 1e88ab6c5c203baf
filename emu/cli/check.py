"""`emu check`: shows what labs need, what this machine lacks, and what a lab uses instead."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click

from emu.cli.options import json_option
from emu.errors import ExitCode
from emu.lab.probe import ProbeResult, run_probes

SCHEMA = "emu.check/1"

_MARGIN = " " * 9


@click.command("check")
@json_option
def command(as_json: bool) -> None:
    """Check this machine for what labs need. Exits with 3 if something required is missing."""
    results = run_probes()
    if as_json:
        click.echo(json.dumps(as_document(results), indent=2))
    else:
        for line in as_lines(results):
            click.echo(line)
    sys.exit(exit_code(results))


def exit_code(results: Sequence[ProbeResult]) -> ExitCode:
    """3 if something required is missing, else 0."""
    lacking = any(result.required and not result.present for result in results)
    return ExitCode.HOST if lacking else ExitCode.OK


def as_document(results: Sequence[ProbeResult]) -> dict[str, object]:
    """The results as a JSON document."""
    return {
        "schema": SCHEMA,
        "ok": exit_code(results) is ExitCode.OK,
        "findings": [asdict(result) | {"required": result.required} for result in results],
    }


def as_lines(results: Sequence[ProbeResult]) -> Iterator[str]:
    """The results as text: a line each, and the remedy below if something is missing."""
    width = max(len(result.name) for result in results)
    for result in results:
        yield f"{_word(result):{len(_MARGIN)}}{result.name:{width}}  for {result.needed_for}"
        if not result.present:
            yield f"{_MARGIN}{result.missing}"
            if result.instead:
                yield f"{_MARGIN}used instead: {result.instead}"
            yield f"{_MARGIN}to get it: {result.remedy}"
    if any("sudo " in result.remedy for result in results if not result.present):
        yield "Commands with sudo need an administrator; you can run the others yourself."


def _word(result: ProbeResult) -> str:
    if result.present:
        return "ok"
    return "MISSING" if result.required else "without"
