"""No sentence contradicts the table beside it, over random recordings and random runs.

A pattern identifies each kind of sentence, and its names, numbers and comparisons must be those of
the table's cells. A sentence without a pattern fails, so a new kind needs a reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given, note
from hypothesis import strategies as st

from emu.measure.records import Deadlock, FailedQueuePair, JobRecord
from emu.measure.requests import UNFINISHED, Requests
from emu.report.comparison_tables import comparison_table
from emu.report.diagnosis import diagnoses
from emu.report.findings import findings
from emu.report.phrases import against_the_bound, offered_and_finished
from emu.report.run_tables import flows_table, totals_table
from emu.report.run_view import RunFacts
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import Spec, spec_from_text
from emu.units import format_size
from tests.support.limits import examples
from tests.support.small_fabrics import shortest_paths
from tests.support.synthetic import INCONCLUSIVE, record

NAMES = ("alpha", "beta", "gamma")
BASE: dict[str, Any] = {
    "name": "drawn",
    "topology": {"kind": "leaf-spine", "spines": 1, "leaves": 2, "hosts_per_leaf": 2},
    "traffic": [
        {"name": "incast", "pattern": "incast", "from": "h2-h4", "to": "h1", "size": "1MB"},
        {"name": "pair", "pattern": "pair", "from": "h2", "to": "h3", "size": "1MB"},
        {
            "name": "load",
            "pattern": "background",
            "among": ["h1", "h2"],
            "sizes": "websearch",
            "rate": "1Gbit",
            "count": 3,
        },
    ],
}
SPECS = {fabric: Spec.model_validate(BASE | {"fabric": fabric}) for fabric in ("roce", "ib")}
FLOWS = [flow.name for flow in SPECS["roce"].workload().flows]
PORTS = [*SPECS["roce"].topology.build().port_named]

few = st.sampled_from([0, 0, 1, 2, 25, 352, 1_000_000])


# --- what is drawn -----------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn(RunFacts):
    """A run with a short repr for hypothesis."""

    def __repr__(self) -> str:
        ends = {flow.name: flow.end_ns for flow in self.flows}
        return f"<{self.name}: {self.recording.fabric}, {ends}, {self.recording.totals}>"


@st.composite
def recordings(draw: st.DrawFn, name: str) -> RunFacts:
    """A run with random counters that need not agree with each other."""
    fabric = draw(st.sampled_from(["roce", "roce", "ib"]))
    ends = {flow: draw(st.sampled_from([500_000, 505_000, 900_000, None])) for flow in FLOWS}
    if draw(st.booleans()):
        ends = {flow: end or 700_000 for flow, end in ends.items()}
    totals = dict.fromkeys(("packets", "packet_hops"), 5_000)
    for counter in ("drops_lossy", "drops_fault", "drops_watchdog", "retransmitted_packets"):
        totals[counter] = draw(few)
    kinds = ("credit_updates",) if fabric == "ib" else ("pause_frames", "ce_marked", "cnp")
    totals |= {counter: draw(few) for counter in kinds}
    unfinished = [flow for flow, end in ends.items() if end is None]
    failed = [
        FailedQueuePair(flow, "h2", "h1", 400_000, "IBV_WC_RETRY_EXC_ERR")
        for flow in unfinished
        if draw(st.booleans())
    ]
    spec = SPECS[fabric]
    made = record(
        spec,
        ends_ns=ends,
        waiting={port: draw(st.sampled_from([0.0, 0.3])) for port in PORTS[:3]},
        totals=totals,
        requests=_requests(draw, ends["load.h1-h2"] is None),
        hosts={"h1": {"rx_pkey_violations": draw(few) if fabric == "ib" else 0}},
        failed_queue_pairs=tuple(failed),
        jobs=_jobs(draw, ends["pair"]),
        deadlocks=(Deadlock(100_000, 0, ("leaf1:spine1", "leaf2:spine1")),)
        if bool(unfinished) and draw(st.booleans())
        else (),
    )
    if draw(st.integers(0, 5)) == 0:
        made = replace(made, fidelity=INCONCLUSIVE)
    return Drawn(name, made, spec, spec.topology.build())


def _requests(draw: st.DrawFn, unfinished: bool) -> Requests:
    """Twelve messages of two sizes for the background load."""
    slowdown = np.array([draw(st.sampled_from([1.0, 1.01, 3.5, 40.0])) for _ in range(12)])
    end_ns = (slowdown * 1_000).astype(np.int64)
    end_ns[0] = UNFINISHED if unfinished else end_ns[0]
    return Requests(
        ("load",),
        np.zeros(12, np.int64),
        np.zeros(12, np.int64),
        end_ns,
        carries=np.array([1_000] * 6 + [1_000_000] * 6),
        alone_ns=np.full(12, 1_000),
    )


def _jobs(draw: st.DrawFn, end_ns: int | None) -> tuple[JobRecord, ...]:
    """The job that makes the pair a collective, in some comparisons."""
    if not draw(st.booleans()):
        return ()
    return (JobRecord("pair", "all-reduce", "ring", 2, 10**6, 1.0, 0, end_ns, 0),)


@st.composite
def comparisons(draw: st.DrawFn) -> list[RunFacts]:
    count = draw(st.integers(1, len(NAMES)))
    runs = [draw(recordings(name)) for name in NAMES[:count]]
    if count > 1 and draw(st.integers(0, 4)) == 0:
        runs[1] = replace(runs[0], name=runs[1].name)  # a variant compared with itself
    return runs


# --- how sentences are read ---------------------------------------------------------------


class Beside:
    """The table beside the sentences, cell by cell."""

    def __init__(self, runs: Sequence[RunFacts]) -> None:
        self.runs = {run.name: run for run in runs}
        table = comparison_table(runs)
        names = [column.name for column in table.columns[1:]]
        self._rows = {
            row[0].text.strip(): dict(zip(names, (cell.text for cell in row[1:]), strict=True))
            for row in table.rows
        }

    def cell(self, row: str, name: str) -> str:
        """The text of a cell, or a dash if the table has no such row."""
        return self._rows.get(row, {}).get(name, "-")

    def count(self, row: str, name: str) -> int:
        text = self.cell(row, name)
        return 0 if text == "-" else int(text.replace(",", ""))

    def lost(self, name: str) -> list[int]:
        rows = ("dropped packets", "lost to faults", "dropped by NICs")
        return [self.count(row, name) for row in rows]


def number(text: str) -> int:
    return int(text.replace(",", ""))


def names_in(text: str) -> list[str]:
    return [word for word in re.findall(r"[\w-]+", text) if word in NAMES]


def plural_is_right(text: str) -> bool:
    """Whether counts and nouns agree, as in `1 port` and `2 ports`."""
    nouns = r"(port|pause frame|packet|CE mark|CNP|queue pair|flow)(s?)\b"
    found = re.findall(rf"(?<![\d,.])([\d,]+) {nouns}", text)
    return all((count == "1") == (not s) for count, _, s in found)


def read_caveat(text: str, table: Beside, said: Sequence[str]) -> None:
    names = names_in(text)
    assert names
    assert all(table.cell("fidelity", name) == "INCONCLUSIVE" for name in names)
    others = [sentence for sentence in said if sentence != text]
    assert not any(name in names_in(sentence) for name in names for sentence in others)


def read_unfinished(text: str, table: Beside, said: Sequence[str]) -> None:
    found = re.match(r"(\w+) did not finish ([\d,]+) of ([\d,]+) flows?(.*)\.$", text)
    assert found
    name, left, of, why = found.groups()
    assert table.cell("all complete, bytes equal", name) == f"{left} of {of} unfinished"
    gave_up = re.search(r": ([\d,]+) queue pairs? gave up", why)
    told = table.count("failed queue pairs", name)
    assert told == (number(gave_up[1]) if gave_up else 0)


def read_loss(text: str, table: Beside, said: Sequence[str]) -> None:
    *lossy, last = text.removeprefix("Loss: ").removesuffix(".").split("; ")
    clean = last if last.endswith("dropped none") else ""
    lossy += [] if clean else [last]
    for name in names_in(clean):
        assert not any(table.lost(name))
    assert sorted(names_in("; ".join(lossy)) + names_in(clean)) == sorted(
        name for name, run in table.runs.items() if run.conclusive
    )
    for name, _, clause in (one.partition(" ") for one in lossy):
        patterns = (r"dropped ([\d,]+)", r"lost ([\d,]+)", r"discarded ([\d,]+)", r"sent ([\d,]+)")
        found = [re.search(pattern, clause) for pattern in patterns]
        counts = [number(one[1]) if one else 0 for one in found]
        assert any(counts[:3])
        assert counts == [*table.lost(name), table.count("retransmitted packets", name)]


def read_no_loss(text: str, table: Beside, said: Sequence[str]) -> None:
    names = names_in(text)
    assert names == [name for name, run in table.runs.items() if run.conclusive]
    assert not any(any(table.lost(name)) for name in names)


def read_refused(text: str, table: Beside, said: Sequence[str]) -> None:
    (name,) = names_in(text)
    assert "No packet was lost" not in "".join(said)
    (label_and_count,) = (
        row for row in totals_table(table.runs[name]).rows if "rx_pkey" in row[0].text
    )
    counts = re.findall(r"dropped ([\d,]+)", text)
    assert sum(map(number, counts)) == number(label_and_count[1].text)


def read_back_pressure(text: str, table: Beside, said: Sequence[str]) -> None:
    found = re.match(r"In (\w+), (.+) held back ([\d,]+) ports? for \S+ \S+( in total)?\.$", text)
    assert found
    name, cause, ports, total = found.groups()
    assert (number(ports) > 1) == bool(total)
    if "pause frame" in cause:
        frames = number(cause.split()[0])
        assert frames == table.count("pause frames", name) > 0
    else:
        assert table.cell("credit waits (PortXmitWait)", name) != "-"


def read_marking(text: str, table: Beside, said: Sequence[str]) -> None:
    found = re.match(
        r"With ([\d,]+) CE marks? and ([\d,]+) CNPs?, (\w+) had ([\d,]+) pause frames?: (.*) "
        r"without any CNP\.$",
        text,
    )
    assert found
    marks, cnps, name, pauses, compared = found.groups()
    rows = ("packets marked CE", "CNPs", "pause frames")
    assert [number(n) for n in (marks, cnps, pauses)] == [table.count(row, name) for row in rows]
    for how, others in re.findall(
        r"(fewer than|as many as|more than) ((?:(?! than| many).)+)", compared
    ):
        for other, count in re.findall(r"(\w+) \(([\d,]+)\)", others):
            assert number(count) == table.count("pause frames", other)
            assert table.count("CNPs", other) == 0
            own = number(pauses)
            fits = {
                "fewer than": own < number(count),
                "as many as": own == number(count),
                "more than": own > number(count),
            }
            assert fits[how]


ROWS = {
    "completion of the last flow": "{}: last completion",
    "FCT slowdown, 99 % of messages": "{}: FCT slowdown, 99 %",
}
"""Criterion of a ranking -> its row in the table."""


def read_advice(text: str, table: Beside, said: Sequence[str]) -> None:
    found = re.match(r"For traffic like (\w+), (.*)\.$", text)
    assert found
    traffic, told = found.groups()
    verdict, _, rest = told.partition("; not finished: ")
    left_out = names_in(rest.partition("; for the ")[0])
    honest = [name for name, run in table.runs.items() if run.conclusive]
    own = [name for name in honest if carried(table, name) == carried(table, names_in(told)[0])]
    unfinished = [
        name
        for name in own
        if not all(flow.completed for flow in table.runs[name].traffic[traffic])
    ]
    assert left_out == unfinished
    for name, count in re.findall(r"(\w+) \((\d+) of \d+ flows? unfinished\)", rest):
        assert int(count) == table.runs[name].unfinished_of(traffic)
    best = names_in(re.split(r" suits? best| finished | are alike", verdict)[0])
    assert not set(best) & set(unfinished)
    assert bool(best) == (len(unfinished) < len(own))
    for by, row in ROWS.items():
        if by in verdict:
            assert all(table.cell(row.format(traffic), name) in verdict for name in best[:1])
    others = re.findall(r"; (\w+) had (.+?), ([\d.e+]+) times as much", verdict)
    if best and "only" not in verdict:
        assert sorted([*best, *(name for name, _, _ in others)]) == sorted(
            set(own) - set(unfinished)
        )
    times = [float(times) for _, _, times in others]
    assert times == sorted(times)
    assert all(more > 1 for more in times)
    if "alike" in verdict:
        assert sorted(best) == sorted(set(own) - set(unfinished))


def carried(table: Beside, name: str) -> dict[str, int]:
    """Entry -> its bytes; for a collective those of a rank."""
    run = table.runs[name]
    sent = {entry: sum(flow.bytes for flow in flows) for entry, flows in run.traffic.items()}
    return sent | {job.name: job.bytes for job in run.recording.jobs}


def read_workloads(text: str, table: Beside, said: Sequence[str]) -> None:
    honest = [name for name, run in table.runs.items() if run.conclusive]
    assert set(names_in(text)) <= set(honest)
    kinds = r"([\d.]+ \w?B) among \d+ hosts in ((?:\w+(?:, | and )?)+)"
    for entry, told in re.findall(r"(\w+) is ([^;]*)", text):
        for size, names in re.findall(kinds, told):
            assert all(format_size(carried(table, own)[entry]) == size for own in names_in(names))


def read_idle_pfc(text: str, table: Beside, said: Sequence[str]) -> None:
    names = names_in(text)
    assert names
    assert all(table.cell("pause frames", name) == "0" for name in names)
    assert not any(
        re.match(rf"In {name}, .* pause frames? held back ", one) for name in names for one in said
    )


def read_uneven(text: str, table: Beside, said: Sequence[str]) -> None:
    found = re.match(r"In (\w+): .* of the (\d+) ports of (\S+) .*, (\S+):(\S+) sent (\d+)%", text)
    assert found
    name, of, switch, owner, _, share = found.groups()
    assert switch == owner
    assert table.runs[name].conclusive
    assert int(share) > 100 / int(of)


def read_nothing(text: str, table: Beside, said: Sequence[str]) -> None:
    """Accept a sentence about specs, which has no cells in the table."""


READINGS: dict[str, Callable[[str, Beside, Sequence[str]], None]] = {
    r"The machine did not keep up with": read_caveat,
    r"\w+ did not finish": read_unfinished,
    r"Loss: ": read_loss,
    r"No (packet was lost|switch dropped a packet) in": read_no_loss,
    r"In \w+, .* for their P_Keys": read_refused,
    r"In \w+, .* held back": read_back_pressure,
    r"With [\d,]+ CE mark": read_marking,
    r"The workloads differ": read_workloads,
    r"PFC had no part in": read_idle_pfc,
    r"For traffic like": read_advice,
    r"How flows begin: ": read_nothing,
    r"(In [\w ,]+: )?The senders of": read_nothing,
    r"In \w+: Equal ports had unequal loads": read_uneven,
}


def sentences_agree(runs: Sequence[RunFacts]) -> None:
    table, said = Beside(runs), findings(runs)
    for sentence in said:
        (reading,) = (read for start, read in READINGS.items() if re.match(start, sentence))
        note(sentence)
        reading(sentence, table, said)
        assert plural_is_right(sentence), sentence
    for name, own in table.runs.items():
        is_told = any(sentence.startswith(f"{name} did not finish") for sentence in said)
        assert is_told == (own.conclusive and bool(own.unfinished))


def words_agree(own: RunFacts) -> None:
    """Assert that the texts beside the tables of one run agree with them."""
    cells = flows_table(own).rows
    over = sum(row[4].text not in ("unfinished",) for row in cells)
    offer = r"Offered: (\d+) flows?, .*\. Finished: (\d+) flows?, "
    offered = re.match(offer, offered_and_finished(own))
    assert offered
    assert (int(offered[1]), int(offered[2])) == (len(cells), over)
    if over < len(cells):
        assert against_the_bound(own) == ""
    limit_ns = own.spec.time_limit_ps // 1000
    at_limit = any((flow.observed_until_ns or 0) >= limit_ns for flow in own.unfinished)
    assert ("ended at its time limit" in offered_and_finished(own)) == at_limit
    found = {diagnosis.pathology.name: diagnosis.found.evidence for diagnosis in diagnoses(own)}
    failed = own.recording.failed_queue_pairs
    assert ("failed queue pairs" in found) == (own.conclusive and bool(failed))
    if own.conclusive and failed:
        told = found["failed queue pairs"]
        assert told.startswith(f"{len(failed)} queue pair")
        lost = own.drops + own.dropped_by_faults + own.dropped_by_hosts
        assert ("no packet was lost" in told) == (lost == 0)


@examples(150)
@given(comparisons())
def test_no_sentence_contradicts_its_table(runs: list[RunFacts]) -> None:
    """The sentences are those of a comparison and of each run."""
    sentences_agree(runs)
    for own in runs:
        words_agree(own)


# --- random small runs ---------------------------------------------------------------------

FAULTS = (
    "",
    "faults: [{at: 20us, pause-storm: {host: h1, priority: 3}}]\n",
    "faults: [{at: 20us, loss: {cable: 'h2:leaf1', probability: 100%}}]\n",
    "faults: [{at: 20us, for: 30us, link-down: {cable: 'leaf1:spine1'}}]\n",
)
SWITCHES = (
    "{}",
    "{pfc: on}",
    "{pfc: on, ecn: {kmin: 20KB, kmax: 80KB}}",
    "{pfc: on, watchdog: {detection: 50us, restoration: 50us, poll: 25us}}",
    "{preset: nvidia}",
)


@st.composite
def small_specs(draw: st.DrawFn) -> Spec:
    fault, switches = draw(st.sampled_from(FAULTS)), draw(st.sampled_from(SWITCHES))
    if "storm" in fault and switches == "{}":
        switches = "{pfc: on}"
    size = draw(st.sampled_from(["9KB", "300KB"]))
    fabric = "roce" if "storm" in fault else draw(st.sampled_from(["roce", "roce", "ib"]))
    text = f"""
fabric: {fabric}
topology: {{kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 2}}
switches: {switches}
hosts: {{nic: {{mtu: 1024, timeout: {draw(st.sampled_from([1, 14]))}}}}}
traffic:
  - {{name: incast, pattern: incast, from: h2-h4, to: h1, size: {size}}}
  - {{name: pair, pattern: pair, from: h2, to: h3, size: 100KB, count: 2}}
time_limit: {draw(st.sampled_from(["100us", "1ms"]))}
{fault}"""
    cc = draw(st.sampled_from(["none", "dcqcn"])) if fabric == "roce" else "none"
    return spec_from_text(text.encode(), source="drawn.emu.yml", settings=[f"hosts.nic.cc={cc}"])


def facts_of(spec: Spec, name: str, folder: Path) -> RunFacts:
    topology = spec.topology.build()
    subnet = shortest_paths(topology) if spec.fabric == "ib" else None
    return RunFacts(name, VirtualRunner(subnet).run(spec, out=folder), spec, topology)


@examples(15)
@given(st.lists(small_specs(), min_size=2, max_size=3))
def test_no_sentence_about_a_run_contradicts_it(specs: list[Spec]) -> None:
    """The runs are small fabrics on the virtual clock, with and without faults."""
    with TemporaryDirectory() as folder:
        runs = [
            facts_of(spec, name, Path(folder)) for spec, name in zip(specs, NAMES, strict=False)
        ]
    sentences_agree(runs)
    for own in runs:
        words_agree(own)
