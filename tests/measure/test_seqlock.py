"""Shared counters that one process writes and another reads."""

from __future__ import annotations

import os

import numpy as np
import pytest

from emu.errors import FabricError
from emu.measure.seqlock import SharedCounters

COLUMNS = [("packets", 2), ("drops", 1)]


def test_reader_sees_published_values() -> None:
    """By the names of the layout, through a copy of the open file."""
    writer = SharedCounters.new(["leaf1:h1", "leaf1:h2"], COLUMNS)
    writer.begin(time_ps=5_000)[:] = np.array([[1, 2, 3], [4, 5, 6]])
    writer.publish()
    reader = SharedCounters(os.dup(writer.file), writer.layout)
    assert reader.read() == (
        5_000,
        {
            "leaf1:h1": {"packets": [1, 2], "drops": [3]},
            "leaf1:h2": {"packets": [4, 5], "drops": [6]},
        },
    )
    assert reader.read_row("leaf1:h2") == {"packets": [4, 5], "drops": [6]}
    reader.close()
    writer.close()


def test_reader_gives_up_when_the_writer_died_in_the_middle() -> None:
    counters = SharedCounters.new(["leaf1:h1"], COLUMNS)
    counters.begin(time_ps=5_000)
    with pytest.raises(FabricError, match="the process that writes them stopped"):
        counters.read()
    counters.publish()
    assert counters.read()[0] == 5_000
    counters.close()
