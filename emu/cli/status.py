"""`emu status [LAB]`: the labs that are up, or one of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from emu.cli.options import json_option, lab_argument
from emu.cli.say import say
from emu.units import format_rate, format_time_ns

if TYPE_CHECKING:
    from emu.lab.standing.client import StandingLab

SCHEMA = "emu.status/1"
_SECONDS_BETWEEN_LOOKS = 0.5
"""More than twice what a lab takes from one post of its counters to the next."""


@click.command("status")
@lab_argument
@json_option
def command(lab: str | None, as_json: bool) -> None:
    """Tell which labs are up, the state of their traffic, and what is wrong; of all, or of LAB."""
    from emu.lab.standing import place

    labs = [_document(name) for name in ([lab] if lab else place.names())]
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "labs": labs}, indent=2))
        return
    if not labs:
        say("no lab is up; start one with `emu up SPEC`")
    for one in labs:
        for line in _lines(one):
            click.echo(line)


def _document(name: str) -> dict[str, Any]:
    """A lab's status, with its spec as JSON instead of a text of it."""
    from emu.lab.standing.client import StandingLab

    with StandingLab(name) as standing:
        status = standing.status()
        found = _what_goes_on(standing, status["spec"])
    return status | {"spec": json.loads(status["spec"]), "diagnosis": found}


def _what_goes_on(standing: StandingLab, spec: str) -> list[str]:
    """Of the lab at this moment, in sentences."""
    from emu.lab.standing.looking import look_at
    from emu.report.live import needs_two_looks, sentences
    from emu.spec.scenario import spec_from_json

    before = after = look_at(standing)
    if needs_two_looks(before):
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        after = look_at(standing)
    return sentences(spec_from_json(spec), before, after)


def _lines(status: dict[str, Any]) -> Iterator[str]:
    traffic = status["traffic"]
    yield (
        f"{status['name']}  up {status['up_seconds']:.0f} s  {status['spec'].get('fabric', 'roce')}"
        f"  {status['slowdown']:g} times slower  forwarded by {status['plane']}"
        f"  marked by {status['marker']}  traffic: {traffic['state']}"
    )
    for sentence in status["diagnosis"]:
        yield f"  ! {sentence}"
    for note in status["notes"]:
        yield f"  {note}"
    for sweep in status["sweeps"]:
        at, seconds = format_time_ns(sweep["at_ns"]), sweep["seconds"]
        yield f"  links changed at {at}; OpenSM had new tables {seconds:.3f} s later"
    conclusive = not traffic["fidelity"] or traffic["fidelity"]["verdict"] == "ok"
    if not conclusive:
        yield f"  INCONCLUSIVE: {'; '.join(traffic['fidelity']['reasons'])}"
    for flow in traffic["flows"]:
        outcome = _outcome(flow) if conclusive else "?"
        yield f"  {flow['name']}  {flow['src']} to {flow['dst']}  {outcome}"


def _outcome(flow: dict[str, Any]) -> str:
    if not flow["completed"]:
        return "not completed"
    took_ns = flow["end_ns"] - flow["start_ns"]
    return f"{format_time_ns(took_ns)}  {format_rate(flow['bytes'] * 8e9 / took_ns)}"
