"""Samples over time: however long a run is they fit, evenly spaced and in order."""

from __future__ import annotations

import numpy as np

from emu.measure.observation import Samples
from tests.model.fabrics import PAIR, spec_of, started


def _samples(until_ns: int) -> Samples:
    with started(spec_of(PAIR)) as run:
        run.run_until(until_ns)
        return run.observe().samples


def test_a_long_run_shows_some_of_a_short_ones_rows_in_order() -> None:
    """There is room for 4096 rows: for 2 ms with a row every 500 ns, for 10 ms with one every 4 us.

    The transfer is over within the first.
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
