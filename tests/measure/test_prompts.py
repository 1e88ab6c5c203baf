"""Figures of inference, from times that are known."""

from __future__ import annotations

import numpy as np

from emu.measure.prompts import prompt_figures
from emu.measure.requests import Requests, latencies
from traffic.graph import Asks

MS = 1_000_000


def recorded(ttft_ms: list[int], wait_ms: list[int]) -> Requests:
    """Prompts that arrive at 0; the KV cache is complete at half of TTFT. -1: unfinished."""
    kinds = [Asks.PROMPT, Asks.KV_TRANSFER, Asks.KV_WAIT]
    ends = [[ttft, ttft // 2, ttft // 2] if ttft >= 0 else [-1] * 3 for ttft in ttft_ms]
    starts = [[0, 0, end[2] - wait] for end, wait in zip(ends, wait_ms, strict=True)]
    end_ns = np.array(ends).ravel()
    return Requests(
        traffic=("chat",),
        of=np.zeros(len(end_ns), np.int64),
        start_ns=np.array(starts).ravel() * MS,
        end_ns=np.where(end_ns < 0, -1, end_ns * MS),
        asks=np.array(kinds * len(ttft_ms)),
    )


def test_share_of_the_fabric_is_that_of_each_prompt() -> None:
    """The shares are 10, 20 and 50 %, not the share of the sums."""
    (figures,) = prompt_figures(recorded([100, 200, 400], [10, 40, 200]))
    assert (figures.ttft.p50_ns, figures.transfer.p50_ns) == (200 * MS, 100 * MS)
    assert (figures.wait.p50_ns, figures.wait.max_ns) == (40 * MS, 200 * MS)
    assert (figures.share_p50, figures.share_max) == (0.2, 0.5)


def test_unfinished_prompts_are_counted_and_have_no_share() -> None:
    (figures,) = prompt_figures(recorded([100, -1], [50, 0]))
    assert (figures.ttft.finished, figures.ttft.unfinished) == (1, 1)
    assert figures.share_p99 == 0.5
    (nothing,) = prompt_figures(recorded([-1], [0]))
    assert nothing.share_p50 is None
    assert nothing.ttft.p50_ns is None


def test_latency_of_an_entry_is_that_of_whole_prompts() -> None:
    """Transfers and waits are parts of them."""
    (latency,) = latencies(recorded([100, 200, 400], [10, 40, 200]))
    assert (latency.requests, latency.max_ns) == (3, 400 * MS)
