"""`emu shell`: opens Mininet's prompt in a running lab, or in a lab of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from emu.cli.notes import print_note
from emu.cli.options import settings_option
from emu.spec.model import load_spec


@click.command("shell")
@click.argument("where", metavar="[SPEC|LAB]", required=False)
@settings_option
def command(where: str | None, settings: tuple[str, ...]) -> None:
    """Open Mininet's prompt: h1 ping h5, net, help.

    SPEC is a file: its fabric is built, without its traffic, and removed afterwards.
    LAB is the name of a running lab; not needed if there is only one.
    """
    if where is not None and Path(where).is_file():
        _shell_of_its_own(Path(where), settings)
    else:
        _shell_in_lab(where)


def _shell_in_lab(lab: str | None) -> None:
    from emu.daemon.client import LabClient
    from emu.daemon.exec import run_in_namespaces, tasks_of

    with LabClient(lab) as client:
        spec = client.status().spec
        tasks = json.dumps(tasks_of(client))
        prompt = [
            sys.executable,
            "-m",
            "emu.daemon.prompt",
            spec,
            tasks,
            str(client.lend()),
        ]
        sys.exit(run_in_namespaces(client, None, prompt))


def _shell_of_its_own(path: Path, settings: tuple[str, ...]) -> None:
    from emu.lab.ipc.jobs import OpenShell
    from emu.lab.namespace import run_in_lab
    from emu.runtime.real import slowdown_for

    spec = load_spec(path, settings)
    slowdown, why = slowdown_for(spec, print_note)
    for note in why:
        print_note(note)
    job = OpenShell(spec.to_json(), str(Path.cwd()), slowdown)
    run_in_lab(job, on_progress=lambda one: click.echo(one.text, err=True), terminal=True)
