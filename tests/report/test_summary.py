"""The summary document: every key, its type, and its text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from types import UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
import pytest

from emu.report.summary import Comparison, compare, summarise, to_json
from tests.support.synthetic import four_fabrics


def assert_is(kind: Any, value: Any) -> None:
    """The value is of this type, as JSON has it: every key of a TypedDict and no other."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        hints = get_type_hints(kind)
        assert value.keys() == hints.keys()
        for key, hint in hints.items():
            assert_is(hint, value[key])
    elif origin is list:
        for item in value:
            assert_is(arguments[0], item)
    elif origin is dict:
        for key, item in value.items():
            assert_is(arguments[0], key)
            assert_is(arguments[1], item)
    elif origin is UnionType:
        assert type(value) in arguments
    else:
        assert type(value) is kind


def test_summary_of_a_run(golden: Callable[[str, str], None]) -> None:
    """The whole document, to be reviewed when it changes."""
    golden("summary.json", to_json(summarise(four_fabrics()[0].recording)))


def test_document_has_the_keys_and_types_it_promises() -> None:
    """Every fabric's summary, as a reader would parse it."""
    recordings = {run.name: run.recording for run in four_fabrics()}
    document = json.loads(to_json(compare(recordings)))
    assert_is(Comparison, document)
    assert list(document["runs"]) == ["roce-lossy", "roce-pfc", "roce-dcqcn", "ib"]


def test_unfinished_flow_is_listed() -> None:
    """It keeps its row, without an end and without a rate."""
    recording = four_fabrics()[0].recording
    unfinished = replace(recording.flows[0], end_ns=None, completed=False)
    summary = summarise(replace(recording, flows=(unfinished, *recording.flows[1:])))
    assert len(summary["flows"]) == 8
    assert summary["flows"][0]["end_ns"] is None
    assert summary["flows"][0]["goodput_bps"] == 0


def test_totals_are_complete_and_plain() -> None:
    """A fabric that counts little still has all totals, and numpy's integers become JSON's."""
    recording = replace(four_fabrics()[3].recording, totals={"packets": cast(int, np.int64(5))})
    totals = json.loads(to_json(summarise(recording)))["totals"]
    assert totals["packets"] == 5
    assert totals["drops_lossless"] == totals["pause_frames"] == totals["credit_updates"] == 0


def test_number_that_json_does_not_know_is_refused() -> None:
    """Better no document than one that other parsers reject."""
    recording = replace(four_fabrics()[0].recording, wall_seconds=float("nan"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(summarise(recording))
