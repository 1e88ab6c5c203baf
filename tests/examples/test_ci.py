"""The example of a CI workflow: its commands refer to things that exist.

The test has no runner. It checks that the file can be read, that every program, option, file and
package in it exists, and that no `emu` runs as root in a job for ordinary users.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pytest
from packaging.specifiers import SpecifierSet
from ruamel.yaml import YAML

from emu.cli.main import cli

ROOT = Path(__file__).parents[2]
WORKFLOW = YAML(typ="safe").load(ROOT / "examples/ci/fabric.yml")
JOBS = WORKFLOW["jobs"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BIN = ".venv/bin/"


def steps(job: dict[str, Any]) -> list[str]:
    """The command lines of a job, split at `&&` as well."""
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    return [line for script in scripts for line in re.split(r"\n|&&", script) if line.strip()]


def commands(program: str, *names: str) -> Iterator[list[str]]:
    """The arguments of every call of a program, in all jobs or in the named ones."""
    for name in names or tuple(JOBS):
        for line in steps(JOBS[name]):
            words = shlex.split(line)
            if words[0] == "sudo":
                words = words[1:]
            if words[0].removeprefix(BIN) == program:
                yield words[1:]


def modules() -> Iterator[tuple[str, list[str]]]:
    for words in commands("python"):
        assert words[0] == "-m"
        yield words[1], words[2:]


def test_every_step_is_an_action_or_a_script() -> None:
    """Every job names its runner."""
    assert set(JOBS) == {"plain", "debian"}
    for job in JOBS.values():
        assert re.fullmatch(r"ubuntu-\d\d\.04", job["runs-on"])
        for step in job["steps"]:
            assert len({"run", "uses"} & step.keys()) == 1
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/x@v1"))


def test_every_program_is_covered_by_these_tests() -> None:
    ours = {"emu", "python"}
    others = {"apt-get", "sysctl", "make", "echo"}
    for job in JOBS.values():
        for line in steps(job):
            program = shlex.split(line.strip().removeprefix("sudo "))[0]
            assert program.removeprefix(BIN) in ours | others


def test_every_emu_command_is_valid() -> None:
    """Verbs, options and values are valid, and specs exist."""
    called = list(commands("emu"))
    assert {words[0] for words in called} == {"run"}
    for verb, *words in called:
        _, command, _ = cli.resolve_command(click.Context(cli), [verb])
        assert command is not None
        parsed = command.make_context(verb, list(words)).params
        assert (ROOT / parsed.get("path", ".")).exists()


def test_every_pytest_command_finds_tests() -> None:
    called = {tuple(words) for module, words in modules() if module == "pytest"}
    assert len(called) == len(JOBS)
    for words in called:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *words]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "test_incast_is_lossless" in ended.stdout


def test_modules_extras_and_make_targets_exist() -> None:
    """The job's Python version satisfies the project's requirement."""
    assert {module for module, _ in modules()} == {"venv", "pip", "emu._build", "pytest"}
    assert all(find_spec(module) for module, _ in modules())
    (extra,) = re.findall(r"'\.\[(\w+)\]'", (ROOT / "examples/ci/fabric.yml").read_text())
    assert extra in PROJECT["optional-dependencies"]
    (python,) = (
        step["with"]["python-version"]
        for step in JOBS["plain"]["steps"]
        if step.get("uses", "").startswith("actions/setup-python")
    )
    assert SpecifierSet(PROJECT["requires-python"]).contains(f"{python}.0")
    assert f".venv/lib/python{python}/site-packages/" in "".join(steps(JOBS["plain"]))
    for (target,) in commands("make"):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_package_is_provisioned() -> None:
    """`vagrant/provision.sh` has the list of packages."""
    known = subprocess.run(
        [ROOT / "vagrant/provision.sh", "--list"], capture_output=True, text=True, check=True
    ).stdout.split()
    installed = [
        word
        for words in commands("apt-get")
        if words[0] == "install"
        for word in words[1:]
        if not word.startswith("-")
    ]
    assert {"mininet", "openvswitch-switch", "libdeflate-dev"} <= set(installed)
    assert set(installed) <= set(known)


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_the_plain_job_runs_both_clocks_without_root(clock: str) -> None:
    job = JOBS["plain"]
    assert "container" not in job
    for line in steps(job):
        if line.startswith("sudo "):
            assert shlex.split(line)[1] in ("apt-get", "sysctl")
    runs = [words for words in commands("emu", "plain") if words[0] == "run"]
    assert any(words[words.index("--clock") + 1] == clock for words in runs)
