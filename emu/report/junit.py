"""A run as JUnit XML, which every build server shows: a test case for each check.

An inconclusive run has an error in the test case `fidelity`, and its checks are skipped, because
they were not judged.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

from emu.report.run_view import RunFacts
from emu.report.verdict import CheckResult


def junit_xml(run: RunFacts) -> str:
    """The whole document."""
    checks = run.checks
    failed = sum(check.passed is False for check in checks)
    skipped = sum(check.passed is None for check in checks)
    suite = Element(
        "testsuite",
        name=run.name,
        tests=str(len(checks) + 1),
        failures=str(failed),
        errors=str(int(not run.conclusive)),
        skipped=str(skipped),
        time=f"{run.recording.wall_seconds:.3f}",
    )
    _add_fidelity(suite, run)
    for check in checks:
        _add_check(suite, run.name, check)
    return tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _add_fidelity(suite: Element, run: RunFacts) -> None:
    case = SubElement(suite, "testcase", classname=run.name, name="fidelity")
    if not run.conclusive:
        SubElement(case, "error", message="; ".join(run.recording.fidelity.reasons))


def _add_check(suite: Element, name: str, check: CheckResult) -> None:
    case = SubElement(suite, "testcase", classname=name, name=check.check)
    if check.passed is None:
        SubElement(case, "skipped", message=check.detail)
    elif not check.passed:
        SubElement(case, "failure", message=check.detail)
    else:
        SubElement(case, "system-out").text = check.detail
