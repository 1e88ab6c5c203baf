"""The summary document: every key, its type, and its text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from emu.report.summary import Comparison, compare, summarise, to_json
from tests.support.synthetic import four_fabrics
from tests.support.typed_json import misfits


def test_the_summary_of_a_run_is_unchanged(golden: Callable[[str, str], None]) -> None:
    """The golden file shows every change of the document."""
    golden("summary.json", to_json(summarise(four_fabrics()[0].recording)))


def test_the_document_has_the_declared_keys_and_types() -> None:
    """The test parses the text like a reader."""
    recordings = {run.name: run.recording for run in four_fabrics()}
    document = json.loads(to_json(compare(recordings)))
    assert misfits(document, Comparison) == []
    assert list(document["runs"]) == ["roce-lossy", "roce-pfc", "roce-dcqcn", "ib"]


def test_an_unfinished_flow_is_listed() -> None:
    """It has no end and the rate 0."""
    recording = four_fabrics()[0].recording
    unfinished = replace(recording.flows[0], end_ns=None, completed=False)
    summary = summarise(replace(recording, flows=(unfinished, *recording.flows[1:])))
    assert len(summary["flows"]) == 8
    assert summary["flows"][0]["end_ns"] is None
    assert summary["flows"][0]["goodput_bps"] == 0


def test_totals_are_complete_and_plain_integers() -> None:
    """Missing totals are 0, and numpy's integers become JSON's."""
    recording = replace(four_fabrics()[3].recording, totals={"packets": cast(int, np.int64(5))})
    totals = json.loads(to_json(summarise(recording)))["totals"]
    assert totals["packets"] == 5
    assert totals["drops_lossless"] == totals["pause_frames"] == totals["credit_updates"] == 0


def test_nan_is_refused() -> None:
    """Other parsers would reject the document."""
    recording = replace(four_fabrics()[0].recording, wall_seconds=float("nan"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(summarise(recording))
