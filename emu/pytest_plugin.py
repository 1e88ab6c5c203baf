"""Fabrics as fixtures: `pytest` runs tests of lossless fabrics as it runs any others.

    @pytest.mark.fabric("incast.emu.yml", switches={"ecn": "off"})
    def test_incast_is_lossless(fabric):
        expect(fabric.run()).lossless(priority=3)

Fixtures
    fabric          an `emu.testing.Fabric` of the marker's spec, which lies beside the test; the
                    marker's other arguments change keys of it
    emu_artifacts   the test's own folder
    emu_spec        the spec's path; override it to choose the file yourself

Markers
    fabric(path, clock=..., **changes)   the spec; `clock` for a test that wants only one
    needs(name, ...)                     what the machine must have, as `emu check` names it

Options
    --emu-clock=virtual|real|both   which clocks tests run on; virtual unless given
    --emu-slowdown=N                of the real clock, whatever the specs say
    --emu-artifacts=DIR             folders of failed tests go there
    --emu-keep                      a failed test's fabric is brought up, to be looked at

A test that fails leaves captures, summary, samples and a page with plots in its folder,
and its report begins with the verdict. What a machine lacks is a skip that names it; with
EMU_REQUIRE=all in the environment, a failure. A run that the machine could not keep up with
is an expected failure, "inconclusive": it shows nothing, either way.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest._code.code import ExceptionChainRepr, ExceptionRepr, ReprEntryNative

if TYPE_CHECKING:  # loading the emulator takes a while, and most test sessions need none
    from emu.testing import Fabric, Run

_CLOCKS = ("virtual", "real")
_NEEDED_FOR_LABS = ("namespaces", "veth", "mininet", "emu._core")
_RUNS = pytest.StashKey[list["Run"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("emu", "emulated fabrics")
    group.addoption("--emu-clock", choices=["virtual", "real", "both"], default="virtual")
    group.addoption("--emu-slowdown", type=_slowdown, metavar="N")
    group.addoption("--emu-artifacts", type=Path, metavar="DIR")
    group.addoption("--emu-keep", action="store_true")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "fabric(path, clock=None, **changes): the spec that the `fabric` fixture runs"
    )
    config.addinivalue_line("markers", "needs(*names): skips where the machine lacks one of these")


def pytest_report_header(config: pytest.Config) -> str:
    clock, slowdown = config.getoption("--emu-clock"), config.getoption("--emu-slowdown")
    by = "" if slowdown is None else f", slowdown {slowdown:g}"
    return f"emu: clock {clock}{by}, kernel {platform.release()}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs tests that have a fabric on each clock that is asked for."""
    if "emu_clock" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("fabric")
    only = marker.kwargs.get("clock") if marker else None
    if only not in (None, *_CLOCKS):
        raise pytest.Collector.CollectError(
            f"{metafunc.definition.nodeid}: there is no clock {only!r}; write clock='virtual', "
            "clock='real', or leave it out for both"
        )
    metafunc.parametrize("emu_clock", [only] if only else _asked_for(metafunc.config))


def _asked_for(config: pytest.Config) -> Sequence[str]:
    asked: str = config.getoption("--emu-clock")
    return _CLOCKS if asked == "both" else (asked,)


def pytest_runtest_setup(item: pytest.Item) -> None:
    _need_clock(item)
    for marker in item.iter_markers("needs"):
        _need(*marker.args)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Why a test failed and what its runs came to is told before anything else, and all of
    them are written down."""
    report = yield
    runs = item.stash.get(_RUNS, [])
    if report.failed and report.when == "call" and runs and call.excinfo:
        sections = [(f"fabric: {run.facts.name}", f"{run}\n{_written(run)}") for run in runs]
        if item.config.getoption("--emu-keep"):
            sections.insert(0, ("kept", _kept(runs[-1], item.nodeid)))
        report.sections[:0] = sections
        _tell_first(report, [_reason(call.excinfo.value), *map(_came_to, runs)])
    return report


@pytest.fixture
def emu_artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The test's own folder; captures are written there."""
    chosen = request.config.getoption("--emu-artifacts")
    if chosen is None:
        return tmp_path
    folder = Path(chosen) / re.sub(r"[^\w.-]+", "-", request.node.nodeid).strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def emu_spec(request: pytest.FixtureRequest) -> Path:
    """The spec that the marker `fabric` names, beside the test's file."""
    marker = request.node.get_closest_marker("fabric")
    if marker is None or len(marker.args) != 1:
        raise pytest.UsageError(
            f"{request.node.nodeid}: which fabric? write @pytest.mark.fabric('FILE.emu.yml')"
        )
    return request.path.parent / str(marker.args[0])


@pytest.fixture
def fabric(
    request: pytest.FixtureRequest, emu_spec: Path, emu_clock: str, emu_artifacts: Path
) -> Fabric:
    """The fabric of the test's spec, on one clock."""
    from emu.testing import Fabric

    marker = request.node.get_closest_marker("fabric")
    changes = (
        {key: value for key, value in marker.kwargs.items() if key != "clock"} if marker else {}
    )
    if emu_clock == "real":
        _need(*_NEEDED_FOR_LABS)
        slowdown = request.config.getoption("--emu-slowdown")
        changes |= {} if slowdown is None else {"slowdown": slowdown}
    runs = request.node.stash.setdefault(_RUNS, [])

    def seen(run: Run) -> None:
        runs.append(run)
        if not run.conclusive:
            _inconclusive(run.recording.fidelity.reasons)

    return Fabric(emu_spec, clock=emu_clock, out=emu_artifacts, changes=changes, on_run=seen)


def _reason(failure: BaseException) -> str:
    """In one line: of a check what was expected and measured, of an assertion what it was."""
    from emu.errors import CheckFailed

    first = next(iter(str(failure).splitlines()), "")
    return (
        f"FAILED: {first}"
        if isinstance(failure, CheckFailed)
        else (f"FAILED: {type(failure).__name__}: {first}")
    )


def _came_to(run: Run) -> str:
    from emu.report.words import fidelity, offered_and_finished

    return f"{run.facts.name}: {offered_and_finished(run.facts)} {fidelity(run.facts)}"


def _written(run: Run) -> str:
    """Writes it down; where to."""
    from emu.errors import EmuError

    try:
        run.write()
    except EmuError as error:
        return str(error)
    return f"{run.out}: all of it"


def _tell_first(report: pytest.TestReport, lines: list[str]) -> None:
    """What pytest shows of the failure begins with these lines. It stays what it was otherwise:
    summaries, JUnit XML and pytest-xdist read the reason and the place from it."""
    shown = report.longrepr
    told = "".join(f"{line}\n" for line in lines)
    if not isinstance(shown, ExceptionRepr):
        report.longrepr = f"{told}{shown}"
        return
    traceback = shown.chain[0][0] if isinstance(shown, ExceptionChainRepr) else shown.reprtraceback
    traceback.reprentries = [ReprEntryNative([told]), *traceback.reprentries]


def _kept(run: Run, test: str) -> str:
    """Brings the run's fabric up, as the test had changed it; what to do with it."""
    from emu.errors import EmuError

    name = re.sub(r"[^\w.-]+", "-", test.rpartition("::")[2]).strip("-")[:64]
    try:
        run.bring_up(name)
    except EmuError as error:
        return f"its fabric could not be brought up: {error}"
    return (
        f"its fabric is up, without traffic, as {name}:\n"
        f"  emu shell {name}      emu traffic start {name}      emu watch {name}\n"
        f"  emu down {name}"
    )


def _need(*names: str) -> None:
    from emu.errors import HostError
    from emu.lab.probe import PROBES, require

    known = {probe.name for probe in PROBES}
    if unknown := [name for name in names if name not in known]:
        raise pytest.UsageError(
            f"needs({unknown[0]!r}): `emu check` knows no such thing; it knows {', '.join(known)}"
        )
    try:
        require(*names)
    except HostError as error:
        _end(f"needs {error}", pytest.skip)


def _need_clock(item: pytest.Item) -> None:
    """Tests for one clock alone are not among those for the others."""
    of_one_case = getattr(item, "callspec", None)
    clock = of_one_case and of_one_case.params.get("emu_clock")
    if clock and clock not in _asked_for(item.config):
        _end(f"needs the {clock} clock; add --emu-clock={clock} or --emu-clock=both", pytest.skip)


def _inconclusive(reasons: tuple[str, ...]) -> None:
    _end(f"inconclusive: {'; '.join(reasons)}", pytest.xfail)


def _end(why: str, otherwise: Callable[[str], object]) -> None:
    """Ends the test, which shows nothing: that is a failure where everything is required."""
    if os.environ.get("EMU_REQUIRE") == "all":
        pytest.fail(why, pytrace=False)
    otherwise(why)


def _slowdown(text: str) -> float:
    """As a spec may have it."""
    from pydantic import TypeAdapter, ValidationError

    from emu.spec.quantities import Slowdown

    try:
        value = TypeAdapter[float | str](Slowdown).validate_python(float(text))
    except (ValidationError, ValueError):
        raise argparse.ArgumentTypeError(
            f"{text} is no slowdown; write a number from 1 on, like 1000"
        ) from None
    return float(value)
