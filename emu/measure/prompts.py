"""Inference: how long prompts wait for their first token, and how much of that is the fabric's.

    TTFT          arrival of a prompt ─────────────────────────▶ its first token
    KV transfer                  first message of its KV cache ──▶ cache complete
    KV wait                              end of its prefill ─────▶ cache complete

The KV wait is what the fabric adds to the time to first token: a cache that is sent layer by layer
is mostly there when the prefill is over. The fabric's share of a prompt is KV wait over TTFT.

The IETF draft "Benchmarking Methodology for AI Inference Serving Network Fabrics"
(draft-calabria-bmwg-ai-fabric-inference-bench) gives 500 ms as reference for the 99th percentile of
TTFT, and 300 ms for the fabric's part. It calls them non-normative, so they are marks to compare
with, and no run fails by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emu.measure.percentile import percentiles
from emu.measure.requests import UNFINISHED, Column, Latency, Requests, latency_of
from traffic.graph import Asks

TTFT_MARK_NS = 500_000_000
KV_WAIT_MARK_NS = 300_000_000
"""The draft's references for the 99th percentile."""


@dataclass(frozen=True)
class PromptFigures:
    """Of all prompts of one traffic entry; times cover what has finished."""

    ttft: Latency
    transfer: Latency
    wait: Latency
    share_p50: float | None
    """The fabric's share of TTFT, 0 to 1, of prompts that have their first token; None: no prompt
    has."""
    share_p99: float | None
    share_max: float | None

    @property
    def traffic(self) -> str:
        return self.ttft.traffic


def prompt_figures(requests: Requests) -> tuple[PromptFigures, ...]:
    """Of each entry with prompts."""
    return tuple(
        _of_entry(requests, place)
        for place in np.unique(requests.of[requests.asks == Asks.PROMPT]).tolist()
    )


def finished_ns(requests: Requests, traffic: str, asks: Asks) -> NDArray[np.int64]:
    """How long each of these requests of an entry took that finished, in order of size."""
    took = _took_ns(requests, traffic, asks)
    return np.sort(took[took != UNFINISHED])


def _took_ns(requests: Requests, traffic: str, asks: Asks) -> Column:
    """The same in the order of prompts; UNFINISHED: it did not finish."""
    start_ns, end_ns = _times(requests, requests.traffic.index(traffic), asks)
    return np.where(end_ns == UNFINISHED, UNFINISHED, end_ns - start_ns)


def _of_entry(requests: Requests, place: int) -> PromptFigures:
    name = requests.traffic[place]
    parts = (Asks.PROMPT, Asks.KV_TRANSFER, Asks.KV_WAIT)
    ttft, transfer, wait = (latency_of(name, *_times(requests, place, asks)) for asks in parts)
    return PromptFigures(ttft, transfer, wait, *_shares(requests, name))


def _times(requests: Requests, place: int, asks: Asks) -> tuple[Column, Column]:
    """Start and end of each such request, in the order of prompts."""
    own = (requests.of == place) & (requests.asks == asks)
    return requests.start_ns[own], requests.end_ns[own]


def _shares(requests: Requests, traffic: str) -> Iterator[float | None]:
    ttft = _took_ns(requests, traffic, Asks.PROMPT)
    wait = _took_ns(requests, traffic, Asks.KV_WAIT)
    over = ttft != UNFINISHED
    if not over.any():
        yield from (None, None, None)
        return
    yield from percentiles(wait[over] / np.maximum(ttft[over], 1), (0.5, 0.99, 1.0))
