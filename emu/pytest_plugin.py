"""Fabrics as pytest fixtures.

    @pytest.mark.fabric("incast.emu.yml", switches={"ecn": "off"})
    def test_incast_is_lossless(fabric):
        expect(fabric.run()).lossless(priority=3)

Fixtures
    fabric          an `emu.testing.Fabric` of the marker's spec, a file beside the test; the
                    marker's other arguments change keys of the spec
    lab             a running `emu.rdma.Lab` of the spec, for programs that use verbs
    manual_clock    an `emu.runtime.virtual.VirtualFabric` of the spec, whose time the test
                    advances; see `emu.testing.eventually`
    golden          compares text with a file in the folder `golden` beside the test
    emu_artifacts   the test's own folder
    emu_spec        the spec's path; override it to choose the file yourself
    emu_slowdown    the slowdown of the real clock, or None; override it to choose one

Markers
    fabric(path, clock=..., **changes)   the spec; `clock` for a test that runs on one clock only
    needs(name, ...)                     what the machine must have, as `emu check` names it
    root                                 the test must run as root
    slow, timing                         for selection (`-m "not slow"`): the test takes long, or
                                         measures time and needs an idle machine

Options
    --emu-clock=auto|virtual|exact|real|both
                                    the clocks that tests run on; auto, the default, is the choice
                                    of `emu run`; both is the virtual and the real one
    --emu-slowdown=N                the slowdown of the real clock, instead of the specs'
    --emu-seed=N                    the seed of everything random, instead of the specs'
    --emu-artifacts=DIR             the folder for the folders of failed tests
    --emu-keep                      start the fabric of a failed test as a lab, for inspection
    --update-golden                 write golden files instead of comparing
    --emu-plan=NAME                 run the cases of an acceptance plan (`emu.plans`), nothing else
    --emu-spec=FILE                 the fabric that the plan tests; else the reference fabric
    --emu-plan-require=KEY=VALUE    what the fabric must do, in place of what its settings say
    --emu-plan-out=DIR              the folder for plan.json and plan.md

A failed test leaves captures, summary, samples and a page with plots in its folder. Its report
begins with the verdict and shows the last events. If the machine lacks something, the test is
skipped with its name, or fails if EMU_REQUIRE=all is in the environment. A run that the machine
could not keep up with is an expected failure, "inconclusive", because it shows nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest._code.code import ExceptionChainRepr, ExceptionRepr, ReprEntryNative

from emu.clocks import AUTO, CLOCKS, EXACT, REAL, VIRTUAL, ClockName

if TYPE_CHECKING:  # loading the emulator takes a while, and most test sessions need none
    from emu.rdma import Lab
    from emu.runtime.virtual import VirtualFabric
    from emu.testing import Fabric, Run

_PROGRAMS = {
    "Open vSwitch": ("ovs-vsctl", "--version"),
    "iproute2": ("ip", "-V"),
    "clang": ("clang", "--version"),
}
_EVENTS_TOLD = 30
_OF_PLANS = ("--emu-spec", "--emu-plan-require", "--emu-plan-out")
"""Options that have no meaning without a plan."""
_BOTH = (VIRTUAL.name, REAL.name)
_RUNS = pytest.StashKey[list["Run"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("emu", "emulated fabrics")
    group.addoption("--emu-clock", choices=[AUTO, *CLOCKS, "both"], default=AUTO)
    group.addoption("--emu-slowdown", type=_slowdown, metavar="N")
    group.addoption("--emu-seed", type=int, metavar="N")
    group.addoption("--emu-artifacts", type=Path, metavar="DIR")
    group.addoption("--emu-keep", action="store_true")
    group.addoption("--update-golden", action="store_true")
    group.addoption("--emu-plan", metavar="NAME")
    group.addoption("--emu-spec", type=Path, metavar="FILE")
    group.addoption("--emu-plan-require", action="append", metavar="KEY=VALUE")
    group.addoption("--emu-plan-out", type=Path, metavar="DIR")


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "fabric(path, clock=None, **changes): the spec that the `fabric` fixture runs",
        "needs(*names): skips where the machine lacks one of these",
        "root: skips where the tests are not root",
        "slow: takes more than a few seconds",
        "timing: measures time, so it needs an idle machine",
    ):
        config.addinivalue_line("markers", line)
    if config.getoption("--emu-plan") is not None:
        from emu.plans.pytest_items import plan_session

        config.pluginmanager.register(plan_session(config), "emu-plan")
    elif lonely := [name for name in _OF_PLANS if config.getoption(name) is not None]:
        raise pytest.UsageError(f"{lonely[0]}: which plan? add --emu-plan NAME")


def pytest_report_header(config: pytest.Config) -> list[str]:
    slowdown, seed = config.getoption("--emu-slowdown"), config.getoption("--emu-seed")
    asked = (
        f"clock {_clock_told(config.getoption('--emu-clock'))}",
        f"slowdown {'of each spec' if slowdown is None else f'{slowdown:g}'}",
        f"seed {'of each spec' if seed is None else seed}",
    )
    programs = (f"{name} {_version(*command)}" for name, command in _PROGRAMS.items())
    return [
        f"emu: {', '.join(asked)}",
        f"emu: kernel {platform.release()}, {', '.join(programs)}",
    ]


def _clock_told(asked: str) -> str:
    """The clock in the header; for auto the one that this machine allows."""
    from emu.runtime.auto_clock import why_no_labs_here

    if asked != AUTO:
        return asked
    why = why_no_labs_here()
    return f"{VIRTUAL.name} ({why})" if why else f"{EXACT.name} for specs that suit a lab"


def _version(*command: str) -> str:
    """The first version number in a program's output."""
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=5).stdout
    except (OSError, subprocess.TimeoutExpired):
        output = ""
    version = re.search(r"\d+(\.\d+)+", output)
    return version[0] if version else "not found"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs tests with a fabric on each selected clock."""
    if "emu_clock" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("fabric")
    only = marker.kwargs.get("clock") if marker else None
    if only not in (None, *CLOCKS):
        raise pytest.Collector.CollectError(
            f"{metafunc.definition.nodeid}: there is no clock {only!r}; write one of "
            f"{', '.join(CLOCKS)}, or leave it out for --emu-clock"
        )
    metafunc.parametrize("emu_clock", [only] if only else _asked_for(metafunc.config))


def _asked_for(config: pytest.Config) -> Sequence[str]:
    asked: str = config.getoption("--emu-clock")
    return _BOTH if asked == "both" else (asked,)


def _allowed(config: pytest.Config) -> Sequence[str]:
    """The clocks that tests for one clock may have."""
    asked = _asked_for(config)
    return (AUTO, VIRTUAL.name, EXACT.name) if AUTO in asked else asked


def pytest_runtest_setup(item: pytest.Item) -> None:
    _need_clock(item)
    if item.get_closest_marker("root") and os.geteuid() != 0:
        _end("needs root; run pytest as root", pytest.skip)
    for marker in item.iter_markers("needs"):
        _need(*marker.args)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Begins the report of a test with the reason of the failure and the results of its runs, and
    writes the runs to files."""
    report = yield
    runs = item.stash.get(_RUNS, [])
    if report.failed and report.when == "call" and runs and call.excinfo:
        sections = [section for run in runs for section in _told_of(run)]
        if item.config.getoption("--emu-keep"):
            sections.insert(0, ("kept", _kept(runs[-1], item.nodeid)))
        report.sections[:0] = sections
        _tell_first(report, [_reason(call.excinfo.value), *map(_came_to, runs)])
    return report


@pytest.fixture
def emu_artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The test's own folder. Captures are written there."""
    chosen = request.config.getoption("--emu-artifacts")
    if chosen is None:
        return tmp_path
    from emu.output_dir import make_folder

    folder = Path(chosen) / re.sub(r"[^\w.-]+", "-", request.node.nodeid).strip("-")
    make_folder(folder)
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
def emu_slowdown(request: pytest.FixtureRequest) -> float | None:
    """The slowdown of the real clock; None: the spec decides."""
    slowdown: float | None = request.config.getoption("--emu-slowdown")
    return slowdown


@pytest.fixture
def fabric(
    request: pytest.FixtureRequest,
    emu_spec: Path,
    emu_clock: str,
    emu_slowdown: float | None,
    emu_artifacts: Path,
) -> Fabric:
    """The fabric of the test's spec, on one clock."""
    runs = request.node.stash.setdefault(_RUNS, [])

    def seen(run: Run) -> None:
        runs.append(run)
        if not run.conclusive:
            _inconclusive(run.recording.fidelity.reasons)

    return _fabric_of(request, emu_spec, emu_clock, emu_slowdown, emu_artifacts, seen)


@pytest.fixture
def lab(
    request: pytest.FixtureRequest,
    emu_spec: Path,
    emu_clock: str,
    emu_slowdown: float | None,
    emu_artifacts: Path,
) -> Iterator[Lab]:
    """A lab of the same fabric, without its traffic. `lab.host("h1").rdma` offers verbs. Where the
    choice of the clock is left open, it is the virtual one."""
    from emu.rdma import Lab

    clock: ClockName = VIRTUAL.name if emu_clock == AUTO else CLOCKS[emu_clock].name
    spec = _fabric_of(request, emu_spec, clock, emu_slowdown, emu_artifacts).spec
    with Lab(spec, clock=clock, out=emu_artifacts) as lab:
        yield lab


@pytest.fixture
def manual_clock(
    request: pytest.FixtureRequest, emu_spec: Path, emu_artifacts: Path
) -> Iterator[VirtualFabric]:
    """The same fabric on the virtual clock, with traffic. Only the test advances its time."""
    with _fabric_of(request, emu_spec, "virtual", None, emu_artifacts).stepped() as fabric:
        yield fabric


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` compares the text with the file of that name in `golden/`.

    With `--update-golden` the file is written instead; review the difference like code.
    """
    from emu.output_dir import make_folder, write_text

    folder = request.path.parent / "golden"

    def check(name: str, text: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            make_folder(folder)
            write_text(path, text)
        if not path.exists():
            pytest.fail(f"there is no {path}; write it with --update-golden", pytrace=False)
        assert text == path.read_text(encoding="utf-8")

    return check


def _fabric_of(
    request: pytest.FixtureRequest,
    spec: Path,
    clock: str,
    slowdown: float | None,
    out: Path,
    on_run: Callable[[Run], None] = lambda run: None,
) -> Fabric:
    """The spec with the changes of the marker, then those of the command line."""
    from emu.testing import Fabric

    marker = request.node.get_closest_marker("fabric")
    changes = dict(marker.kwargs) if marker else {}
    changes.pop("clock", None)
    if clock in CLOCKS:
        _need(*CLOCKS[clock].needs)
    if slowdown is not None and clock == REAL.name:
        changes["slowdown"] = slowdown
    seed = request.config.getoption("--emu-seed")
    changes |= {} if seed is None else {"seed": seed}
    return Fabric(spec, clock=clock, out=out, changes=changes, on_run=on_run)


def _reason(failure: BaseException) -> str:
    """One line: the expected and measured values of a check, or the text of an assertion."""
    from emu.errors import CheckFailed

    first = next(iter(str(failure).splitlines()), "")
    return (
        f"FAILED: {first}"
        if isinstance(failure, CheckFailed)
        else (f"FAILED: {type(failure).__name__}: {first}")
    )


def _told_of(run: Run) -> list[tuple[str, str]]:
    """The sections of a run's report: the whole report, then the last events if it is a result."""
    name = run.facts.name
    sections = [(f"fabric: {name}", f"{run}\n{_written(run)}")]
    if run.conclusive:
        latest = run.events[-_EVENTS_TOLD:]
        sections.append((f"last {len(latest)} events: {name}", "\n".join(map(str, latest))))
    return sections


def _came_to(run: Run) -> str:
    from emu.report.phrases import fidelity, offered_and_finished

    return f"{run.facts.name}: {offered_and_finished(run.facts)} {fidelity(run.facts)}"


def _written(run: Run) -> str:
    """Writes the run to files. Returns a text that says where."""
    from emu.errors import EmuError

    try:
        run.write()
    except EmuError as error:
        return str(error)
    return f"{run.out}: all of it"


def _tell_first(report: pytest.TestReport, lines: list[str]) -> None:
    """Puts these lines before pytest's report of the failure. The report keeps its type, from which
    summaries, JUnit XML and pytest-xdist read the reason and the place."""
    shown = report.longrepr
    text = "".join(f"{line}\n" for line in lines)
    if not isinstance(shown, ExceptionRepr):
        report.longrepr = f"{text}{shown}"
        return
    traceback = shown.chain[0][0] if isinstance(shown, ExceptionChainRepr) else shown.reprtraceback
    traceback.reprentries = [ReprEntryNative([text]), *traceback.reprentries]


def _kept(run: Run, test: str) -> str:
    """Starts a lab of the run's fabric, with the test's changes. Returns how to use it."""
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The reasons for skips, each once, with the number of tests."""
    skipped = (report.longrepr for report in terminalreporter.getreports("skipped"))
    reasons = (entry[2].removeprefix("Skipped: ") for entry in skipped if isinstance(entry, tuple))
    needed = Counter(reason for reason in reasons if reason.startswith("needs "))
    if needed:
        terminalreporter.section("what tests were skipped for")
    for reason, count in needed.most_common():
        terminalreporter.line(f"{count} skipped: {reason}")


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
    """Skips a test for one clock when that clock is not selected."""
    of_one_case = getattr(item, "callspec", None)
    clock = of_one_case and of_one_case.params.get("emu_clock")
    if clock and clock not in _allowed(item.config):
        others = " or --emu-clock=both" if clock in _BOTH else ""
        _end(f"needs the {clock} clock; add --emu-clock={clock}{others}", pytest.skip)


def _inconclusive(reasons: tuple[str, ...]) -> None:
    _end(f"inconclusive: {'; '.join(reasons)}", pytest.xfail)


def _end(why: str, otherwise: Callable[[str], object]) -> None:
    """Ends the test as inconclusive: an expected failure, or a failure if EMU_REQUIRE=all."""
    if os.environ.get("EMU_REQUIRE") == "all":
        pytest.fail(why, pytrace=False)
    otherwise(why)


def _slowdown(text: str) -> float:
    """A slowdown as a spec may give it."""
    from emu.spec.quantities import as_slowdown

    try:
        return float(as_slowdown(float(text)))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is no slowdown; write a number from 1 on, like 1000"
        ) from None
