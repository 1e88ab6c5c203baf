"""JUnit XML of a run: what a build server would show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import fromstring

from emu.measure.recording import Fidelity
from emu.report.facts import RunFacts
from emu.report.junit import junit_xml
from emu.testing import Fabric

SPEC = b"""
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 64KB}]
verify:
  - {completed: all}
  - {goodput: {flow: flow, at_least: 99Gbit}, fail: too slow}
"""


def test_every_check_is_a_test_case(tmp_path: Path) -> None:
    """Passed, failed with what was measured; of an inconclusive run nothing is judged."""
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
