"""Samples over time: however long a run is, they fit in memory, evenly spaced and in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emu.bindings import fabric
from emu.measure.observation import Samples
from emu.runtime.virtual import VirtualRunner
from tests.support.small_fabrics import PAIR, spec_of, started


def _samples(until_ns: int) -> Samples:
    with started(spec_of(PAIR)) as run:
        run.run_until(until_ns)
        return run.observe().samples


def test_long_run_thins_the_samples_of_a_short_one() -> None:
    """There is room for 4096 rows: over 2 ms with a row every 500 ns, over 10 ms with one every 4
    us.

    The transfer ends within the first 500 us.
    """
    short, long = _samples(1_000_000), _samples(10_000_000)
    every_eighth = short.time_ns[:-1:8]
    common = len(every_eighth)
    assert np.all(np.diff(short.time_ns[:-1]) == 500)
    assert np.all(np.diff(long.time_ns[:-1]) == 4000)
    assert short.time_ns[-1] == 1_000_000
    assert long.time_ns[-1] == 10_000_000
    np.testing.assert_array_equal(long.time_ns[:common], every_eighth)
    np.testing.assert_array_equal(long.tx_bytes[:common], short.tx_bytes[:-1:8])
    np.testing.assert_array_equal(long.flow_bytes[:common], short.flow_bytes[:-1:8])
    assert np.all(long.tx_bytes[common:] == short.tx_bytes[-1])


def test_sample_interval_can_be_set() -> None:
    """More rows than the default keeps, and the same bytes where both have a row."""
    with started(spec_of(PAIR, "sample_interval=100ns")) as run:
        run.run_until(600_000)
        fine = run.observe().samples
    coarse = _samples(600_000)
    assert np.all(np.diff(fine.time_ns[:-1]) == 100)
    assert len(fine.time_ns) > 4096
    shared = len(coarse.time_ns) - 1
    np.testing.assert_array_equal(fine.tx_bytes[:-1:5][:shared], coarse.tx_bytes[:-1])


def test_missing_memory_for_samples_is_noted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fabric, "WANTED_CELLS", 0)
    spec = spec_of(PAIR, "sample_interval=20ns")
    recording = VirtualRunner().run(spec, out=tmp_path)
    (note,) = (note for note in recording.notes if note.startswith("samples are "))
    assert note.endswith("not 20ns as sample_interval asks: there was no memory for more")
    roomy = spec_of(PAIR)
    recording = VirtualRunner().run(roomy, out=tmp_path)
    assert not [note for note in recording.notes if note.startswith("samples are ")]
