"""`emu check`: what this machine has of what labs use, and what is used instead."""

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
    """Check this machine for what labs need. Exits 3 when something required is missing."""
    results = run_probes()
    if as_json:
        click.echo(json.dumps(as_document(results), indent=2))
    else:
        for line in as_lines(results):
            click.echo(line)
    sys.exit(exit_code(results))


def exit_code(results: Sequence[ProbeResult]) -> ExitCode:
    """3 when a required thing is missing, 0 otherwise."""
    lacking = any(result.required and not result.present for result in results)
    return ExitCode.HOST if lacking else ExitCode.OK


def as_document(results: Sequence[ProbeResult]) -> dict[str, object]:
    """The results for programs."""
    return {
        "schema": SCHEMA,
        "ok": exit_code(results) is ExitCode.OK,
        "findings": [asdict(result) | {"required": result.required} for result in results],
    }


def as_lines(results: Sequence[ProbeResult]) -> Iterator[str]:
    """The results for people: a line each, and below it what to do where something lacks."""
    width = max(len(result.name) for result in results)
    for result in results:
        yield f"{_word(result):{len(_MARGIN)}}{result.name:{width}}  for {result.needed_for}"
        if not result.present:
            yield f"{_MARGIN}{result.missing}"
            if result.instead:
                yield f"{_MARGIN}used instead: {result.instead}"
            yield f"{_MARGIN}to have it: {result.remedy}"
    if any("sudo " in result.remedy for result in results if not result.present):
        yield "What begins with sudo needs an administrator; all else you can do yourself."


def _word(result: ProbeResult) -> str:
    if result.present:
        return "ok"
    return "MISSING" if result.required else "without"
