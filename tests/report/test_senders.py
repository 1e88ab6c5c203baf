"""Senders that leave their cables idle are named as the limit, with a setting that helps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from emu.report.findings import findings
from emu.report.run_view import RunFacts
from emu.report.senders import limited_by_senders
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import spec_from_text

FABRIC = """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 4}
switches: {buffer: 4MB, pfc: {}}
payload: elided
"""


def run_of(entry: str, folder: Path, *settings: str) -> RunFacts:
    text = FABRIC + f"traffic: [{{name: load, {entry}}}]\n"
    spec = spec_from_text(text.encode(), source="load.emu.yml", settings=settings)
    topology = spec.topology.build()
    return RunFacts("load", VirtualRunner().run(spec, out=folder), spec, topology)


def goodput_bps(run: RunFacts) -> float:
    return run.median_goodput_bps("load")


ONE_AT_A_TIME = "pattern: pair, from: h1, to: h5, size: 16KB, count: 100"


def test_one_small_message_at_a_time_limits_the_sender(tmp_path: Path) -> None:
    """The named share is the measured one, and the suggested setting fills the cable."""
    slow = run_of(ONE_AT_A_TIME, tmp_path)
    (sentence,) = limited_by_senders(slow)
    assert sentence.startswith(
        "The senders of load are the limit, not the fabric: with 1 outstanding message of 16KB"
    )
    found = re.search(r"they use at most (\d+)% of h\d's 100Gbit cable", sentence)
    cure = re.search(r"With outstanding: (\d+), they would keep it busy", sentence)
    assert found
    assert cure
    wire = (16_000 + 4 * 82 + 16) / 16_000
    assert goodput_bps(slow) * wire / 100e9 == pytest.approx(int(found[1]) / 100, rel=0.05)
    fast = run_of(ONE_AT_A_TIME, tmp_path, f"traffic.0.outstanding={cure[1]}")
    assert not limited_by_senders(fast)
    assert goodput_bps(fast) * wire / 100e9 > 0.95


@pytest.mark.parametrize(
    "entry",
    [
        "pattern: pair, from: h1, to: h5, size: 16KB",
        "pattern: pair, from: h1, to: h5, size: 4MB, count: 3",
        "pattern: pair, from: h1, to: h5, size: 16KB, count: 20, outstanding: 20",
        "pattern: pair, from: h1, to: h5, size: 16KB, count: 20, every: 50us",
        "pattern: incast, from: h2-h8, to: h1, size: 16KB, count: 20",
    ],
)
def test_other_senders_are_not_named_as_the_limit(entry: str, tmp_path: Path) -> None:
    """The cases are a single message, large or many messages, paced ones, and an incast."""
    assert not limited_by_senders(run_of(entry, tmp_path))


@pytest.mark.parametrize(("size", "count"), [("256B", 3), ("16KB", 4)])
def test_suggested_outstanding_is_at_most_the_count(size: str, count: int, tmp_path: Path) -> None:
    """All messages at once may or may not fill the cable."""
    entry = f"pattern: pair, from: h1, to: h5, size: {size}, count: {count}"
    slow = run_of(entry, tmp_path)
    (sentence,) = limited_by_senders(slow)
    assert f"With all {count} (outstanding: {count}), they" in sentence
    fast = run_of(entry, tmp_path, f"traffic.0.outstanding={count}")
    assert goodput_bps(fast) > goodput_bps(slow)


def test_a_ping_pong_is_not_named_as_the_limit(tmp_path: Path) -> None:
    """A ping-pong has one message in flight by definition."""
    assert not limited_by_senders(
        run_of("pattern: ping-pong, from: h1, to: h5, size: 16KB, count: 100", tmp_path)
    )


def test_a_comparison_names_runs_limited_by_senders(tmp_path: Path) -> None:
    """If all runs are limited, the sentence has no names."""
    slow = run_of(ONE_AT_A_TIME, tmp_path)
    fast = run_of(ONE_AT_A_TIME, tmp_path, "traffic.0.outstanding=16")
    both = [sentence for sentence in findings([slow, slow]) if "senders of load" in sentence]
    assert len(both) == 1
    assert both[0].startswith("The senders")
    (one,) = [sentence for sentence in findings([fast, slow]) if "senders of load" in sentence]
    assert one.startswith("In load: The senders")
