"""JUnit XML of a run, as a build server would read it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
from click.testing import CliRunner, Result

from emu.cli.main import cli
from emu.errors import EmuError, ExitCode, UsageError
from emu.measure.records import Fidelity
from emu.report.junit import junit_xml
from emu.report.run_view import RunFacts
from emu.testing import Fabric

SPEC = b"""
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 64KB}]
verify:
  - {completed: all}
  - {goodput: {flow: flow, at_least: 99Gbit}, fail: too slow}
"""


def test_every_check_is_a_test_case(tmp_path: Path) -> None:
    """A failure has the measured value. The checks of an inconclusive run are skipped."""
    path = tmp_path / "pair.emu.yml"
    path.write_bytes(SPEC)
    facts = Fabric(path, clock="virtual", out=tmp_path).run().facts
    suite = fromstring(junit_xml(facts))
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
    }
    (failure,) = suite.iter("failure")
    assert failure.get("message", "").endswith(": too slow")

    late = replace(facts.recording, fidelity=Fidelity("inconclusive", reasons=("too busy",)))
    suite = fromstring(junit_xml(RunFacts("pair", late, facts.spec, facts.topology)))
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "2")
    (error,) = suite.iter("error")
    assert error.get("message") == "too busy"


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pair.emu.yml").write_bytes(SPEC)
    return tmp_path / "pair.emu.yml"


def _run(spec: Path, junit: str) -> Result:
    return CliRunner().invoke(cli, ["run", str(spec), "--clock", "virtual", "--junit", junit])


def test_the_folder_of_the_file_is_created(spec: Path) -> None:
    assert _run(spec, "ci/results/junit.xml").exit_code == ExitCode.CHECK_FAILED
    assert fromstring((spec.parent / "ci/results/junit.xml").read_text()).get("tests") == "3"


def test_an_unwritable_file_is_refused_before_the_run(spec: Path) -> None:
    """No results are left."""
    error = _run(spec, f"{spec}/junit.xml").exception
    assert isinstance(error, UsageError)
    assert str(error).endswith(
        "nothing can be written there (Not a directory); choose another --junit"
    )
    assert list(spec.parent.iterdir()) == [spec]


def test_a_full_disk_is_an_error_of_its_own(spec: Path) -> None:
    """The exit code is not 1, which means a failed check."""
    (spec.parent / "junit.xml").symlink_to("/dev/full")
    error = _run(spec, "junit.xml").exception
    assert isinstance(error, EmuError)
    assert error.exit_code == ExitCode.FAILED
    assert "No space left on device" in str(error)


def test_a_closed_pipe_does_not_stop_the_junit_file(spec: Path) -> None:
    """The command is like `emu run SPEC --junit junit.xml | true`."""
    command = [sys.executable, "-m", "emu.cli.main", "run", str(spec), "--clock", "virtual"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [*command, "--junit", str(spec.parent / "junit.xml"), "--out", str(spec.parent / "out")],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as emu:
        assert emu.stdout is not None
        emu.stdout.close()
    assert fromstring((spec.parent / "junit.xml").read_text()).get("tests") == "3"
