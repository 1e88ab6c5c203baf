"""Imports of a command, which decide how long a user waits for its start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import emu.cli
from emu.cli.main import VERBS, cli

ROOT = Path(__file__).parents[2]
INCAST = str(ROOT / "topologies" / "incast.emu.yml")

_RUN = """
import json, sys
from emu.cli.main import cli
cli.main(sys.argv[1:], standalone_mode=False)
print(json.dumps(sorted(sys.modules)))
"""


def modules_after(*words: str) -> set[str]:
    """All modules that are loaded after a command line has been carried out."""
    command = [sys.executable, "-c", _RUN, *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_help_imports_no_verb() -> None:
    modules = modules_after("--help")
    assert {name for name in modules if name.startswith("emu.")} == {
        "emu.cli",
        "emu.cli.main",
        "emu.errors",
        "emu.mpi_environment",
        "emu.privilege",
        "emu.quick_imports",
        "emu.resources",
        "emu.streams",
    }
    assert not modules & {"numpy", "pydantic", "networkx"}


def test_help_lists_every_verb() -> None:
    """A file in emu/cli with a `command` is a verb; a keyword of Python has an underscore at
    its end, and dashes are underscores.

    `emu mn` is hidden, as it is for Mininet's scripts.
    """
    folder = Path(emu.cli.__path__[0])
    with_command = {
        file.stem.rstrip("_").replace("_", "-")
        for file in folder.glob("*.py")
        if "\ndef command(" in file.read_text()
    }
    assert set(VERBS) == with_command
    listed = CliRunner().invoke(cli, ["--help"]).stdout.partition("Commands:\n")[2]
    assert {line.split()[0] for line in listed.splitlines()} == with_command - {"mn"}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_runs_its_own_command(verb: str) -> None:
    context = click.Context(cli)
    _, command, rest = cli.resolve_command(context, [verb, "--help"])
    assert command is not None
    assert command.name == verb
    assert rest == ["--help"]


def test_validate_imports_no_more_than_it_needs() -> None:
    """It imports neither charts nor graph algorithms nor runners."""
    modules = modules_after("validate", INCAST)
    assert not modules & {"networkx", "jinja2", "rich", "scapy", "mininet"}
    assert not {name for name in modules if name.startswith(("emu.lab", "emu.report"))}


@pytest.mark.parametrize("words", [["exec", "h1", "true"], ["status"], ["pause"], ["down"]])
def test_commands_about_labs_start_without_numbers_and_models(
    words: list[str], tmp_path: Path
) -> None:
    """Users type them again and again. With no lab up, they have imported all that they need."""
    code = (
        "import json, sys\nfrom emu.cli.main import cli\n"
        f"try: cli.main({words}, standalone_mode=False)\n"
        "except BaseException: pass\nprint(json.dumps(sorted(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    no_labs = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=ROOT, env=no_labs
    )
    modules = set(json.loads(done.stdout.splitlines()[-1]))
    assert "emu.daemon.registry" in modules
    assert not modules & {"numpy", "pydantic", "networkx", "rich", "emu.spec.scenario"}


@pytest.mark.parametrize("module", ["emu.daemon.client", "emu.daemon.daemon_main"])
def test_clients_and_owners_of_labs_import_no_models(module: str) -> None:
    """The models of specs take longer to import than a client takes for all else."""
    code = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)
    modules = set(json.loads(done.stdout))
    assert module in modules
    assert not modules & {"pydantic", "emu.spec.scenario", "mininet"}
