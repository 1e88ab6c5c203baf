"""`emu check`: what this machine has of what labs use, and what is used instead."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click

from emu.cli.options import json_option
from emu.errors import ExitCode
from emu.lab.probe import Finding, look_around

SCHEMA = "emu.check/1"

_MARGIN = " " * 9


@click.command("check")
@json_option
def command(as_json: bool) -> None:
    """Check this machine for what labs need. Exits 3 when something required is missing."""
    findings = look_around()
    if as_json:
        click.echo(json.dumps(as_document(findings), indent=2))
    else:
        for line in as_lines(findings):
            click.echo(line)
    sys.exit(exit_code(findings))


def exit_code(findings: Sequence[Finding]) -> ExitCode:
    """3 when a required thing is missing, 0 otherwise."""
    lacking = any(finding.required and not finding.present for finding in findings)
    return ExitCode.HOST if lacking else ExitCode.OK


def as_document(findings: Sequence[Finding]) -> dict[str, object]:
    """The findings for programs."""
    return {
        "schema": SCHEMA,
        "ok": exit_code(findings) is ExitCode.OK,
        "findings": [asdict(finding) | {"required": finding.required} for finding in findings],
    }


def as_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """The findings for people: a line each, and below it what to do where something lacks."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        yield f"{_word(finding):{len(_MARGIN)}}{finding.name:{width}}  for {finding.needed_for}"
        if not finding.present:
            yield f"{_MARGIN}{finding.missing}"
            if finding.instead:
                yield f"{_MARGIN}used instead: {finding.instead}"
            yield f"{_MARGIN}to have it: {finding.remedy}"
    if any("sudo " in finding.remedy for finding in findings if not finding.present):
        yield "What begins with sudo needs an administrator; all else you can do yourself."


def _word(finding: Finding) -> str:
    if finding.present:
        return "ok"
    return "MISSING" if finding.required else "without"
