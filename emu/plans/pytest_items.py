"""The cases of a plan as pytest's test items: `pytest --emu-plan NAME` runs them and nothing else.

JUnit XML has criterion, tolerance and measured value as properties of each case. With pytest-xdist,
workers run the cases, and the first process makes the table from what they report.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from shutil import get_terminal_size

import pytest
from _pytest._code.code import ExceptionInfo, TerminalRepr

from emu.errors import EmuError
from emu.output_dir import refuse_unwritable
from emu.plans.bench import Bench, bench_of
from emu.plans.case import Case, Result, Verdict
from emu.plans.plan import Plan, plan_named
from emu.plans.report import counted, printed, write_plan
from emu.plans.requirements import requirements_of
from emu.spec.load import load_spec

REFERENCE = Path(__file__).with_name("reference.emu.yml")
_FIELDS = tuple(field.name for field in fields(Result))


def plan_session(config: pytest.Config) -> PlanSession:
    """The plugin that runs the plan of the command line. Raises pytest.UsageError."""
    try:
        return PlanSession(config)
    except EmuError as error:
        raise pytest.UsageError(str(error)) from None


class PlanSession:
    """A plugin for a session of pytest that runs one plan."""

    def __init__(self, config: pytest.Config) -> None:
        """Raises EmuError for a plan, a spec or a folder that cannot be used."""
        self._plan = plan_named(config.getoption("--emu-plan"))
        self._path: Path = config.getoption("--emu-spec") or REFERENCE
        self._required: list[str] = config.getoption("--emu-plan-require") or []
        self._out: Path | None = config.getoption("--emu-plan-out")
        if self._out is not None:
            refuse_unwritable(self._out, "--emu-plan-out")
        self._bench = bench_of(
            load_spec(self._path), requirements_of(self._required), str(self._path)
        )
        self._results: list[Result] = []

    def pytest_report_header(self) -> str:
        of = "the reference fabric" if self._path == REFERENCE else str(self._path)
        bench = self._bench
        return (
            f"emu: plan {self._plan.name} on {of}, virtual clock: switch under test "
            f"{bench.switch}, receiver {bench.receiver}, senders {', '.join(bench.senders[:2])}"
        )

    def pytest_collection(self, session: pytest.Session) -> bool:
        """The cases in place of files with tests."""
        collector = PlanCollector.from_parent(session, name=self._plan.name, nodeid=self._plan.name)
        collector.plan, collector.bench = self._plan, self._bench
        session.items = [*session.genitems(collector)]
        config = session.config
        config.hook.pytest_collection_modifyitems(
            session=session, config=config, items=session.items
        )
        self._refuse_too_few_hosts(session.items)
        session.testscollected = len(session.items)
        config.hook.pytest_collection_finish(session=session)
        return True

    def _refuse_too_few_hosts(self, items: list[pytest.Item]) -> None:
        has = len(self._bench.topology.host)
        cases = [item.case for item in items if isinstance(item, CaseItem)]
        if lacking := [case for case in cases if case.hosts > has]:
            others = " and ".join(f"not {case.id}" for case in lacking)
            raise pytest.UsageError(
                f"{self._path}: has {has} hosts, and {lacking[0].id} ({lacking[0].title}) needs "
                f"{lacking[0].hosts}; add hosts, or leave such cases out with -k '{others}'"
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        values = {key: str(value) for key, value in report.user_properties if key in _FIELDS}
        if report.when == "call" and len(values) == len(_FIELDS):
            self._results.append(Result(**values))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        results = self._sorted()
        if not results:
            return
        terminalreporter.section(f"plan {self._plan.name}: {counted(results)}")
        terminalreporter.line(printed(results, get_terminal_size().columns))
        if self._out is not None:
            terminalreporter.line(f"{self._out}: plan.json, plan.md")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        is_worker = hasattr(session.config, "workerinput")
        if self._out is None or is_worker or not self._results:
            return
        fabric = {
            "fabric": "reference fabric" if self._path == REFERENCE else str(self._path),
            "switch_under_test": self._bench.switch,
            "required": ", ".join(self._required) or "what the fabric's own settings say",
        }
        try:
            write_plan(self._out, self._plan, fabric, self._sorted())
        except EmuError as error:
            raise pytest.UsageError(str(error)) from None

    def _sorted(self) -> list[Result]:
        """In the order of the plan, whatever worker ran a case."""
        order = {case.id: place for place, case in enumerate(self._plan.cases)}
        return sorted(self._results, key=lambda result: order[result.id])


class PlanCollector(pytest.Collector):
    """The cases of a plan."""

    plan: Plan
    bench: Bench

    def collect(self) -> Iterator[pytest.Item]:
        for case in self.plan.cases:
            item = CaseItem.from_parent(self, name=case.id)
            item.case, item.bench = case, self.bench
            yield item


class CaseItem(pytest.Item):
    """A case."""

    case: Case
    bench: Bench

    def runtest(self) -> None:
        result = self.case.run(self.bench)
        self.user_properties += [(name, getattr(result, name)) for name in _FIELDS]
        if result.verdict == Verdict.SKIPPED.value:
            pytest.skip(result.measured)
        if result.verdict == Verdict.INCONCLUSIVE.value:
            _inconclusive(result.measured)
        if result.verdict == Verdict.FAILED.value:
            raise CriterionFailed(result)

    def repr_failure(
        self, excinfo: ExceptionInfo[BaseException], style: object = None
    ) -> str | TerminalRepr:
        """A failed criterion needs no traceback."""
        if isinstance(excinfo.value, CriterionFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        return Path(__file__), None, f"{self.case.id} {self.case.title}"


def _inconclusive(why: str) -> None:
    """An expected failure, or a failure if EMU_REQUIRE=all, as in tests with fabrics."""
    told = f"inconclusive: {why}"
    if os.environ.get("EMU_REQUIRE") == "all":
        pytest.fail(told, pytrace=False)
    pytest.xfail(told)


class CriterionFailed(Exception):
    """The criterion of a case does not hold."""

    def __init__(self, result: Result) -> None:
        super().__init__(
            f"{result.id} {result.title}\n  criterion: {result.criterion}\n"
            f"  tolerance: {result.tolerance}\n  measured:  {result.measured}"
        )
