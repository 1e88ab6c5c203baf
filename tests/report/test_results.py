"""The page of results: made from runs, with passed and failed results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from markdown_it import MarkdownIt

from emu.cli.results import command
from emu.errors import UsageError
from emu.report import results
from emu.report.results import results_page
from emu.report.run_view import RunFacts
from emu.runtime.record import record
from tests.support import synthetic

SPEC = """
about:
  id: T1
  title: One flow has the link to itself
  expected: 98.04 % of 100 Gb/s
  source: derived
  plot: rates
  hosts: topology.hosts_per_side
  cure: none is needed
name: alone
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 1MB}]
compare:
  slow: {hosts: {nic: {mtu: 256}}, verify: [{goodput: {flow: flow, at_least: 70Gbit}}]}
  fast: {verify: [{goodput: {flow: flow, at_least: AT_LEAST}}]}
"""


def run(folder: Path, at_least: str, *options: str) -> Result:
    (folder / "alone.emu.yml").write_text(SPEC.replace("AT_LEAST", at_least))
    (folder / "other.emu.yml").write_text("topology: {kind: dumbbell, hosts_per_side: 1}\n")
    words = [str(folder), "--page", str(folder / "README.md"), "--out", str(folder / "out")]
    clock = () if "--clock" in options else ("--clock", "virtual")
    return CliRunner().invoke(command, [*words, *clock, *options])


def test_results_stand_beside_the_expected(tmp_path: Path) -> None:
    """Each variant has its check and the measured value. Specs without `about:` are left out."""
    assert run(tmp_path, "95Gbit").exit_code == 0
    page = (tmp_path / "README.md").read_text()
    head = (
        "| [T1](#t1) | One flow has the link to itself | 98.04 % of 100 Gb/s | passed | derived |"
    )
    assert head in page
    assert "| slow | goodput of flow at least 70 Gb/s | 7" in page
    assert "| fast | goodput of flow at least 95 Gb/s | 9" in page
    assert "Cure: none is needed" in page
    assert "other" not in page
    assert re.search(r"!\[rates of T1\]\(pictures/T1.svg\)\n\n.*a full strip is [\d.]+ Gb/s", page)
    assert (tmp_path / "pictures/T1.svg").read_text().startswith("<svg xmlns=")
    assert (tmp_path / "out/alone/virtual/fast/summary.json").exists()


def test_a_failed_result_shows_in_page_and_exit_code(tmp_path: Path) -> None:
    """The other checks of the result still pass."""
    assert run(tmp_path, "99Gbit").exit_code == 1
    page = (tmp_path / "README.md").read_text()
    assert "| **failed** |" in page
    assert "| slow | goodput of flow at least 70 Gb/s | 7" in page
    assert "| fast | goodput of flow at least 99 Gb/s | **9" in page


def test_resume_runs_only_changed_specs(tmp_path: Path) -> None:
    """Runs of unchanged variants are reused."""

    def written(variant: str) -> int:
        return (tmp_path / "out/alone/virtual" / variant / "summary.json").stat().st_mtime_ns

    assert run(tmp_path, "95Gbit").exit_code == 0
    first, slow, fast = (tmp_path / "README.md").read_text(), written("slow"), written("fast")
    assert run(tmp_path, "95Gbit", "--resume").exit_code == 0
    assert (written("slow"), written("fast")) == (slow, fast)
    assert (tmp_path / "README.md").read_text() == first
    assert run(tmp_path, "99Gbit", "--resume").exit_code == 1
    assert written("slow") == slow
    assert written("fast") > fast


def test_a_result_may_be_for_one_clock_alone(tmp_path: Path) -> None:
    """The page of the other clock leaves it out."""
    spec = SPEC.replace("  id: T1", "  clocks: [real]\n  id: T1").replace("AT_LEAST", "1Gbit")
    (tmp_path / "real.emu.yml").write_text(spec)
    with pytest.raises(UsageError, match="has an `about:` section that is for the virtual clock"):
        CliRunner().invoke(command, [str(tmp_path), "--clock", "virtual"], catch_exceptions=False)


def test_a_folder_without_results_is_an_error(tmp_path: Path) -> None:
    """It names a clock only if the user has."""
    (tmp_path / "other.emu.yml").write_text("topology: {kind: dumbbell, hosts_per_side: 1}\n")
    with pytest.raises(UsageError, match=r"no spec there has an `about:` section$"):
        CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)


def test_the_page_shows_the_tolerance_of_each_clock() -> None:
    """A value that passes only on the real clock is within the tolerance that the page names."""
    spec = synthetic.spec(
        about={"id": "T2", "title": "t", "expected": "e", "source": "s"},
        verify=[
            {"goodput": {"flow": "victim", "is": "80Gbit", "within": 0.2, "within_virtual": 0.01}}
        ],
    )
    ends_ns = dict.fromkeys((flow.name for flow in spec.workload().flows), 100_000)

    def runs(clock: str) -> list[RunFacts]:
        recording = synthetic.record(spec, ends_ns=ends_ns, clock=clock)
        return [RunFacts("T2", recording, spec, spec.topology.build())]

    assert spec.about is not None
    both = {clock: runs(clock) for clock in ("virtual", "real")}
    page = results_page([results.Result(spec.about, Path("t2.emu.yml"), both)], "emu results")
    wanted = "goodput of victim is 80 Gb/s within 1 % (real clock: 20 %)"
    assert f"| T2 | {wanted} | 80 Gb/s | 80 Gb/s |" in page


def test_results_are_rerun_with_other_seeds_and_sizes(tmp_path: Path) -> None:
    """The table has a line per result and a column per variation.

    The page does not mention them.
    """
    twice = ["--hosts", "twice", "--hosts", "twice"]
    shown = run(tmp_path, "95Gbit", "--seeds", "3", *twice, "--set", "topology.hosts_per_side=3")
    assert shown.exit_code == 0
    table = shown.stdout.partition("Reruns\n")[2].splitlines()
    assert table[:2] == [
        "result  as it stands  seed +1  seed +2  twice the hosts",
        "T1      passed        passed   passed   passed",
    ]
    assert "passed   fast, twice the hosts" in shown.stdout
    assert "twice" not in (tmp_path / "README.md").read_text()


def test_a_result_of_one_size_prints_the_reason(tmp_path: Path) -> None:
    """Another result has several sizes."""
    text = SPEC.replace("AT_LEAST", "95Gbit").replace("id: T1", "id: T2")
    single = text.replace("hosts: topology.hosts_per_side", "one_size: two are enough")
    tmp_path.joinpath("single.emu.yml").write_text(single)
    shown = run(tmp_path, "95Gbit", "--hosts", "twice", "--set", "topology.hosts_per_side=2")
    assert "T1      passed        passed" in shown.stdout
    assert "T2 has one size: two are enough" in shown.stdout


def test_failed_reruns_show_in_table_and_exit_code(tmp_path: Path) -> None:
    """The table counts the failed checks."""
    shown = run(tmp_path, "99Gbit", "--seeds", "2")
    assert shown.exit_code == 1
    assert "T1      FAILED 1 of 2  FAILED 1 of 2" in shown.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--hosts", "twice"],
            "--hosts twice: no spec in",
        ),  # no host beside the first
        (["--hosts", "half", "--set", "topology.hosts_per_side=2"], "--hosts half: no spec in"),
    ],
)
def test_sizes_that_no_spec_has_are_refused(options: list[str], told: str, tmp_path: Path) -> None:
    """Nothing runs, because the same hosts again would prove nothing."""
    shown = run(tmp_path, "95Gbit", *options)
    assert isinstance(shown.exception, UsageError)
    assert told in str(shown.exception)
    assert not (tmp_path / "out").exists()


def test_a_clock_that_is_given_twice_is_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows it once."""
    runs = []

    def counted(*words: Any, **options: Any) -> Any:
        runs.append(words[0])
        return record(*words, **options)

    monkeypatch.setattr("emu.cli.results.record", counted)
    assert run(tmp_path, "95Gbit", "--clock", "virtual", "--clock", "virtual").exit_code == 0
    assert runs == ["slow", "fast"]


HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=a> | [x](javascript:a) ![y](z) "
    "`c` *b* _e_ ~~s~~ $x$ &lt; \\\\"
)


def test_markup_in_a_spec_is_shown_as_text() -> None:
    """Titles, sources, cures, checks and the command cannot add HTML, links, pictures or layout."""
    about = dict.fromkeys(("title", "expected", "source", "cure"), HOSTILE) | {"id": "T3"}
    checks = [{"goodput": {"flow": "victim", "at_least": "99Gbit"}, "fail": HOSTILE}]
    spec = synthetic.spec(about=about, verify=checks)
    ends_ns = dict.fromkeys((flow.name for flow in spec.workload().flows), 100_000)
    run = RunFacts("T3", synthetic.record(spec, ends_ns=ends_ns), spec, spec.topology.build())
    assert spec.about is not None
    result = results.Result(spec.about, Path("a [b](c).emu.yml"), {"virtual": [run]})
    page = MarkdownIt().enable("table").render(results_page([result], f"emu `results` {HOSTILE}"))
    shown = page.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert shown.count(HOSTILE) >= 6
    assert set(re.findall(r"<(\w+)", page)) <= ALLOWED
    assert re.findall('(?:href|src)="([^"]*)"', page) == [
        "#t3",
        "a%20%5Bb%5D%28c%29.emu.yml",
        "pictures/T3.svg",
    ]


ALLOWED = {
    "h1",
    "h2",
    "p",
    "code",
    "a",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "strong",
    "img",
}
