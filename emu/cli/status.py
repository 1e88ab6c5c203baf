"""`emu status [LAB]`: shows the running labs, or one of them, and those that have died."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from emu.cli.notes import print_note
from emu.cli.options import json_option, lab_argument
from emu.clocks import EXACT
from emu.errors import ExitCode, FabricError, UsageError
from emu.units import format_rate, format_time_ns, write_instant
from emu.words import on_hosts

if TYPE_CHECKING:
    from emu.daemon.client import LabClient
    from emu.daemon.registry import Ended

SCHEMA = "emu.status/1"
_STATES = {
    "runs": "runs, at",
    "stands": "stands at",
    "paused": "paused at",
    "failed": "has failed at",
}
_SECONDS_BETWEEN_SNAPSHOTS = 0.5
"""More than twice the interval in which a lab publishes its counters."""


@click.command("status")
@lab_argument
@json_option
def command(lab: str | None, as_json: bool) -> None:
    """Show all running labs, or LAB: the state of the traffic, and what is wrong.

    A lab that has died is listed once, with the reason. Exits with 4 if a lab does not
    answer, or if another version of emu runs it.
    """
    from emu.daemon import registry

    if lab is not None:
        try:
            document = _document(lab)
        except UsageError:  # it contains the reason if the lab has died
            registry.forget([one for one in registry.ended() if one.name == lab])
            raise
        _show([document], [], as_json=as_json, is_all=False)
        return
    labs, silent = [], []
    for name, answer in _documents(registry.names()).items():
        if isinstance(answer, dict):
            labs.append(answer)
        elif not isinstance(answer, FabricError | UsageError):
            raise answer
        elif name in registry.names():
            silent.append(str(answer))
        else:  # it has just ended
            print_note(str(answer))
    dead = registry.ended()
    _show(labs, dead, as_json=as_json, is_all=not silent)
    registry.forget(dead)
    for text in silent:
        print_note(text)
    sys.exit(ExitCode.FAILED if silent else ExitCode.OK)


def _show(
    labs: Sequence[dict[str, Any]], dead: Sequence[Ended], *, as_json: bool, is_all: bool
) -> None:
    """Prints the labs, and flushes stdout. `is_all`: whether there are no other labs."""
    if as_json:
        ended = [asdict(one) for one in dead]
        click.echo(json.dumps({"schema": SCHEMA, "labs": labs, "ended": ended}, indent=2))
        sys.stdout.flush()
        return
    if not labs and is_all:
        print_note("no lab is up; start one with `emu up SPEC`")
    for one in labs:
        for line in _lines(one):
            click.echo(line)
    for gone in dead:
        at = "" if gone.at is None else f" at {datetime.fromtimestamp(gone.at):%Y-%m-%d %H:%M:%S}"
        click.echo(f"{gone.name}  has ended{at}: {gone.reason}")
    sys.stdout.flush()


def _documents(names: Sequence[str]) -> dict[str, dict[str, Any] | Exception]:
    """Every lab's status, or the exception. All labs are queried at the same time, so that a silent
    one does not delay the others."""
    documents: dict[str, dict[str, Any] | Exception] = {}

    def ask(name: str) -> None:
        try:
            documents[name] = _document(name)
        except Exception as error:
            documents[name] = error

    # Daemon threads: Ctrl-C does not wait for a silent lab.
    asking = [threading.Thread(target=ask, args=(name,), daemon=True) for name in names]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    return {name: documents[name] for name in names}


def _document(name: str) -> dict[str, Any]:
    """A lab's status, with its spec as a JSON object instead of a text."""
    from emu.daemon.client import LabClient

    with LabClient(name) as client:
        status = client.status()
        found = _diagnosis(client, status.spec)
    return asdict(status) | {"spec": json.loads(status.spec), "diagnosis": found}


def _diagnosis(client: LabClient, spec: str) -> list[str]:
    """Sentences about problems in the lab at this moment."""
    from emu.daemon.client_snapshot import take_snapshot
    from emu.report.lab_diagnosis import needs_second_snapshot, problems_now
    from emu.spec.scenario import spec_from_json

    before = after = take_snapshot(client)
    if needs_second_snapshot(before):
        time.sleep(_SECONDS_BETWEEN_SNAPSHOTS)
        after = take_snapshot(client)
    return problems_now(spec_from_json(spec), before, after)


def _lines(status: dict[str, Any]) -> Iterator[str]:
    traffic = status["traffic"]
    yield (
        f"{status['name']}  up {status['up_seconds']:.0f} s  {status['spec'].get('fabric', 'roce')}"
        f"  {_time(status)}  forwarded by {status['plane']}"
        f"  marked by {status['marker']}  traffic: {traffic['state']}"
    )
    if programs := status["programs"]:
        yield f"  verbs programs: {on_hosts(programs)}"
    if (stopped := status["stopped_programs"]) and status["clock"] == EXACT.name:
        yield f"  time stands, as a signal has stopped programs: {on_hosts(stopped)}"
    for sentence in status["diagnosis"]:
        yield f"  ! {sentence}"
    for note in status["notes"]:
        yield f"  {note}"
    if (cpu := _computing(status)) is not None:
        yield f"  {cpu}"
    for sweep in status["sweeps"]:
        at, seconds = format_time_ns(sweep["at_ns"]), sweep["seconds"]
        yield f"  links changed at {at}; OpenSM had new tables {seconds:.3f} s later"
    if traffic["error"]:
        yield f"  its traffic has failed: {traffic['error']}"
    conclusive = not traffic["fidelity"] or traffic["fidelity"]["verdict"] == "ok"
    if not conclusive:
        yield f"  INCONCLUSIVE: {'; '.join(traffic['fidelity']['reasons'])}"
    for flow in traffic["flows"]:
        outcome = _outcome(flow) if conclusive else "?"
        yield f"  {flow['name']}  {flow['src']} to {flow['dst']}  {outcome}"


def _time(status: dict[str, Any]) -> str:
    """How emulated time passes, and on the exact clock the present time."""
    if status["clock"] != EXACT.name:
        return f"{status['slowdown']:g} times slower"
    state, now_ps = status["time"]["state"], status["time"]["now_ps"]
    now = format_time_ns(now_ps / 1000) if state == "runs" else write_instant(now_ps)
    return f"exact clock: {_STATES[state]} {now}"


def _computing(status: dict[str, Any]) -> str | None:
    """What it costs that programs compute, unless it is free."""
    cpu = status["spec"].get("hosts", {}).get("cpu", "free")
    if status["clock"] != EXACT.name or cpu == "free":
        return None
    return (
        f"programs that compute take emulated time (hosts.cpu: {cpu}): their results differ from "
        "run to run"
    )


def _outcome(flow: dict[str, Any]) -> str:
    if not flow["completed"]:
        return "not completed"
    took_ns = flow["end_ns"] - flow["start_ns"]
    return f"{format_time_ns(took_ns)}  {format_rate(flow['bytes'] * 8e9 / took_ns)}"
