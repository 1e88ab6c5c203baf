"""Samples of CPU time for each process of a run."""

from __future__ import annotations

import os
import time

import numpy as np

from emu.lab.cpu import CpuMeter, SampleLog


def test_samples_of_a_long_run_are_thinned_out() -> None:
    """The samples cover the whole run at about one for each current interval."""
    looks, now_ns = SampleLog(), 0
    for _ in range(3_000):
        looks.add(now_ns, {"shim": now_ns / 1e9})
        now_ns += round(looks.interval_seconds * 1e9)
    samples = looks.samples()
    assert samples.time_ns[0] == 0
    assert 250 <= len(samples.time_ns) < 512
    gaps = np.diff(samples.time_ns) / 1e9 / looks.interval_seconds
    assert gaps.min() == 1
    assert gaps.max() <= 1.5
    assert samples.time_ns[-1] == now_ns - looks.interval_seconds * 1e9
    assert samples.seconds["shim"] == tuple(own / 1e9 for own in samples.time_ns)


def test_cpu_time_is_counted_in_its_interval() -> None:
    """The test itself uses half a second of CPU time. Times and counts never decrease."""
    meter = CpuMeter({"own": os.getpid()})
    start_ns = time.monotonic_ns()
    with meter.sampling(start_ns) as looks:
        began = time.process_time()
        while time.process_time() - began < 0.5:
            pass
    samples = looks.samples()
    assert len(samples.time_ns) > 2
    assert list(samples.time_ns) == sorted(samples.time_ns)
    assert 0.5 <= samples.last["own"] <= (samples.time_ns[-1] / 1e9) * 1.1
    for before, after in zip(samples.seconds["own"], samples.seconds["own"][1:], strict=False):
        assert before <= after


def test_a_sample_right_after_another_replaces_it() -> None:
    """The last sample of a run may come early: the kernel counts CPU time
    in hundredths of a second."""
    looks = SampleLog()
    for time_ns in (0, 10**6, 50_000_000, 51_000_000):
        looks.add(time_ns, {"shim": 0.0})
    assert looks.samples().time_ns == (0, 10**6, 51_000_000)
