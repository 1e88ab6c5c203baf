"""`emu reachability [LAB]`: measures who can reach whom on the management network, and across."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from emu.cli.notes import print_note
from emu.cli.options import json_option, lab_argument, names_of
from emu.errors import ExitCode

SCHEMA = "emu.reachability/1"
_SECONDS = 1.0


@click.command("reachability")
@lab_argument
@click.option(
    "--fabric",
    is_flag=True,
    help="Also between hosts on the fabric. The probes take their time and room there.",
)
@click.option(
    "--wait",
    "seconds",
    type=click.FloatRange(0.1, 600),
    metavar="SECONDS",
    default=_SECONDS,
    show_default=True,
    help="How long probes may take, in real time.",
)
@click.option(
    "--nodes",
    metavar="NAMES",
    help="Only these hosts and switches, for example h1,h2,leaf1.  [default: all]",
)
@json_option
def command(
    lab: str | None, fabric: bool, seconds: float, nodes: str | None, as_json: bool
) -> None:
    """Measure who can reach whom in LAB, and compare that with its spec.

    Sends real probes (ping, TCP, UDP, a broadcast frame) on the management network, from there to
    the fabric and from the fabric to there, and looks for interfaces that join both. Exits with 1
    if anything is reached that the spec's `management.allow` does not list, or is not that it
    lists.

    Hosts send their probes for the management network into the fabric, where their switch drops
    them (no_route).
    """
    from emu.daemon.client import LabClient
    from emu.daemon.messages import MeasureReachability
    from emu.report.reachability import lines_of

    with LabClient(lab) as client:
        measured, _ = client.ask(MeasureReachability(seconds, fabric, names_of(nodes)))
        name = client.name
    cells = measured.cells
    wrong = [cell for cell in cells if cell.is_wrong]
    is_good = not (wrong or measured.joints)
    if as_json:
        document = {
            "schema": SCHEMA,
            "lab": name,
            "as_allowed": is_good,
            "joints": measured.joints,
            "cells": [asdict(cell) for cell in cells],
        }
        click.echo(json.dumps(document, indent=2))
    else:
        for line in (*lines_of(cells), *measured.joints):
            click.echo(line)
        verdict = "as the spec allows" if is_good else "NOT as the spec allows"
        print_note(f"{name}: {len(cells):,} cells measured, {verdict}")
    sys.exit(ExitCode.OK if is_good else ExitCode.CHECK_FAILED)
