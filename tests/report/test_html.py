"""The HTML page: it always renders, needs no network, and escapes every name."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.measure.recording import Recording, Series
from emu.measure.records import FailedQueuePair, FlowRecord, MarkedBy
from emu.report.html import comparison_page, run_page
from emu.report.run_view import RunFacts
from emu.report.write import write_comparison, write_run
from tests.support.synthetic import INCONCLUSIVE, four_fabrics, machine_series, record, run, spec

NASTY = "<script>alert('x')</script>&\"${$}"
EMPTY_ELEMENTS = {"meta", "br"}


class Page(HTMLParser):
    """Collect a page's elements and text, and assert that elements are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in EMPTY_ELEMENTS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_self_contained(page: str) -> None:
    """Assert that no element or attribute loads anything, and that there is no address."""
    parsed = Page(page)
    assert not {"script", "link", "img", "iframe", "object", "image"} & set(parsed.elements)
    references = [value for name, value in parsed.attributes if name in ("href", "src")]
    assert all(reference.startswith("#") for reference in references)
    assert not re.search(r"https?:|//\w|@import|url\((?!#)", page)


def test_a_comparison_page_is_self_contained() -> None:
    """A page can be mailed and read offline."""
    page = comparison_page("incast", four_fabrics())
    assert_self_contained(page)
    assert len(page.encode()) < 2_000_000


def test_the_same_run_gives_the_same_page() -> None:
    """The page has no dates and no random identifiers."""
    assert run_page(four_fabrics()[2]) == run_page(four_fabrics()[2])


def test_names_are_escaped_everywhere() -> None:
    """Names come from files and appear in tables, legends, plots and tooltips."""
    good = four_fabrics()[0]
    names = {flow.name: f"{NASTY}{n}" for n, flow in enumerate(good.flows)}
    recording = replace(
        good.recording,
        marker=cast(MarkedBy, NASTY),
        notes=(NASTY,),
        flows=tuple(replace(flow, name=names[flow.name], traffic=NASTY) for flow in good.flows),
        series=replace(good.recording.series, flows=tuple(names.values())),
        captures={NASTY: Path(NASTY)},
        hosts={NASTY: {NASTY: 1}},
    )
    nasty = replace(good, name=NASTY, recording=recording)
    for page in (run_page(nasty), comparison_page(NASTY, [nasty, nasty])):
        assert "script" not in Page(page).elements
        assert "alert('x')" in Page(page).text


def test_an_inconclusive_run_shows_no_numbers() -> None:
    """The page begins with the verdict and has neither plots nor rates."""
    good = four_fabrics()[1]
    page = Page(run_page(replace(good, recording=replace(good.recording, fidelity=INCONCLUSIVE))))
    assert page.text.index("INCONCLUSIVE") < page.text.index("RoCEv2")
    assert "svg" not in page.elements
    assert "Gb/s" not in page.text


def test_the_machines_activity_is_shown_over_time() -> None:
    """Runs on the real clock have these charts with any verdict, if there are data."""
    good = four_fabrics()[1]
    told = ("longest in Open vSwitch", "frames lost by the machine", "Processor time by user")
    for fidelity in (good.recording.fidelity, INCONCLUSIVE):
        recording = replace(good.recording, fidelity=fidelity, machine=machine_series())
        page = Page(run_page(replace(good, recording=recording))).text
        assert all(what in page for what in told)
    page = Page(run_page(good)).text
    assert not any(what in page for what in told)


def test_both_themes_define_every_colour() -> None:
    """The style sets every used variable for light and for dark."""
    page = comparison_page("incast", four_fabrics())
    used = set(re.findall(r"var\(--(\w+)\)", page))
    for name in used:
        assert len(re.findall(rf"--{name}: ", page)) == 2, name


def test_more_flows_than_colours_are_a_distribution() -> None:
    """Every flow stays in the table."""
    scenario = spec(
        traffic=[
            {"name": f"t{n}", "pattern": "incast", "from": "h2-h8", "to": "h1", "size": "1MB"}
            for n in range(5)
        ],
        verify=[],
    )
    ends = {flow.name: 1_000 * n for n, flow in enumerate(scenario.workload().flows, 1)}
    page = Page(run_page(run(record(scenario, ends_ns=ends), scenario)))
    assert "Share of all flows" in page.text
    assert all(name in page.text for name in ends)


def test_written_files_exist(tmp_path: Path) -> None:
    """The files are pages, summaries and samples, for a run and for a comparison."""
    runs = four_fabrics()[:2]
    single = write_run(runs[0], tmp_path / "run")
    for each in runs:
        write_run(each, tmp_path / "compare" / each.name)
    several = write_comparison("incast", runs, tmp_path / "compare")
    written = {what: path for what, path in (single | several).items() if "capture" not in what}
    assert set(written) >= {"page", "summary", "samples", "roce-lossy", "roce-pfc"}
    assert all(path.exists() for path in written.values())


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Random recordings of the incast: unfinished or idle flows, wild samples, or none."""
    base = four_fabrics()[draw(st.sampled_from([0, 3]))].recording
    samples = draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def wild(columns: int) -> Any:
        return np.sort(rng.integers(0, 10 ** rng.integers(1, 13), (samples, columns)), axis=0)

    ports = len(base.series.ports)
    series = Series(
        time_ns=wild(1)[:, 0],
        ports=base.series.ports,
        queue_bytes=wild(ports),
        buffer_bytes=wild(ports),
        tx_bytes=wild(ports),
        paused_ns=wild(ports),
        credit_wait_ns=wild(ports),
        flows=base.series.flows,
        flow_bytes=wild(len(base.series.flows)),
    )
    flows = tuple(draw(flow_like(flow)) for flow in base.flows)
    return replace(base, series=series, flows=flows[: draw(st.integers(0, len(flows)))])


@st.composite
def flow_like(draw: st.DrawFn, flow: FlowRecord) -> FlowRecord:
    start = draw(st.integers(0, 10**9))
    took = draw(st.none() | st.integers(0, 10**12))
    return replace(
        flow,
        start_ns=start,
        end_ns=None if took is None else start + took,
        completed=took is not None and draw(st.booleans()),
    )


@settings(max_examples=8)
@given(recordings())
def test_any_recording_renders(recording: Recording) -> None:
    """The report of any recording can be written."""
    scenario = spec(fabric=recording.fabric)
    assert_self_contained(run_page(run(recording, scenario)))


@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_fabrics_renders(count: int) -> None:
    """A comparison may have a single fabric."""
    runs: list[RunFacts] = four_fabrics()[:count]
    assert_self_contained(comparison_page("incast", runs))


def lossy_and_stuck() -> RunFacts:
    """A run with 312 dropped packets and a failed queue pair."""
    lossy = four_fabrics()[0]
    failed = (FailedQueuePair("victim", "h5", "h3", 90_000, "IBV_WC_RETRY_EXC_ERR"),)
    flows = tuple(
        replace(flow, end_ns=None, completed=False) if flow.name == "victim" else flow
        for flow in lossy.flows
    )
    return replace(
        lossy, recording=replace(lossy.recording, failed_queue_pairs=failed, flows=flows)
    )


@pytest.mark.parametrize("several", [False, True])
def test_diagnoses_come_first(several: bool) -> None:
    """They stand above checks and tables, also if the checks passed."""
    sick = lossy_and_stuck()
    text = Page(
        comparison_page("two", [sick, four_fabrics()[1]]) if several else run_page(sick)
    ).text
    first = text.index("Failed queue pairs: 1 queue pair went to the error state")
    assert text.index("2 diagnoses") < first
    assert first < text.index("Checks")
    assert first < text.index("The fabric")


def test_the_picture_shows_drops_and_failed_queue_pairs() -> None:
    """A port that dropped has a cross with the count, and the host with the failure a frame."""
    page = run_page(lossy_and_stuck())
    assert re.search(
        r'class="drops">.*leaf1:h1: .*312 packets dropped.*<text[^>]*>312</text>', page, re.S
    )
    assert "h5: 1 of its queue pairs failed" in page
    healthy = run_page(four_fabrics()[1])
    assert 'class="drops"' not in healthy
    assert "failed</title>" not in healthy
