"""Inference with prefill and decode on different hosts: prompts, and transfers of KV caches.

A prompt of C tokens arrives at a prefill host, which computes the keys and values of all layers:
the KV cache. They go to a decode host, which then computes the first token of the answer.

    prefill   arrival ─ wait for earlier prompts ─┬─ prefill ─┐
    fabric                                        │           └─ KV cache ─┐
    decode                                        │                        └─ first token
              ├──────────────────────────── TTFT ──────────────────────────────────────┤
                                                              ├─ KV wait ──┤

    KV cache of a prompt      S = 2·L·G·d·C·e bytes: L layers, G key/value heads of d elements of
                              e bytes; a message of S / L for each layer
    prefill                   C times the time of a token
    transfer: whole           all layers are sent when the prefill is over
    transfer: layer-wise      each layer is sent when its part of the prefill is over, 1 / L of it.
                              So the fabric carries all but the last layer beside computation

TTFT is the time to first token. The KV wait is what the fabric adds to it. Prompts arrive at random
(Poisson), and prefill hosts take turns; each serves one prompt after another. Decode hosts take
turns, too, and one further after each round, so that each prefill host sends to all of them.

Left out: communication within an instance of several GPUs, the tokens after the first, batches of
several prompts, caches of shared prefixes, and what a scheduler would do if hosts are unequally
busy. The method and the KPIs are from the IETF draft on benchmarks of AI inference fabrics (BMWG).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from traffic.collectives.schedule import Request, Schedule
from traffic.graph import Asks, Column, OperationGraph

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Serving:
    """What prompts cost."""

    layers: int
    layer_bytes_of_token: int
    """Bytes that a token has in the KV cache of one layer."""
    token_ns: float
    """The time of prefill for each token of a prompt."""
    first_token_ns: int
    """The time that a decode host takes for the first token."""
    layer_wise: bool


@dataclass(frozen=True)
class Prompt:
    """A prompt, as drawn."""

    arrives_ns: int
    tokens: int


def draw_prompts(
    count: int, per_second: float, lengths: Sequence[int], random: Random
) -> list[Prompt]:
    """Prompts that arrive at random, with one of the lengths each."""
    prompts, at_ns = [], 0.0
    for _ in range(count):
        at_ns += random.expovariate(per_second / NS_PER_S)
        prompts.append(Prompt(round(at_ns), random.choice(lengths)))
    return prompts


def inference(
    name: str,
    prefill: Sequence[str],
    decode: Sequence[str],
    prompts: Sequence[Prompt],
    serving: Serving,
    *,
    start_ns: int = 0,
    priority: int | None = None,
) -> OperationGraph:
    """Serves the prompts. Three requests for each: the prompt, its transfer and its wait."""
    builder = _Builder(serving, len(prefill))
    for number, prompt in enumerate(prompts):
        turn, place = divmod(number, len(prefill))
        builder.serve(prompt, place, len(prefill) + (number + turn) % len(decode))
    return builder.schedule.graph(
        name,
        (*prefill, *decode),
        start_ns=start_ns,
        priority=priority,
        requests=builder.requests,
    )


class _Builder:
    """Adds prompt after prompt to a schedule."""

    def __init__(self, serving: Serving, prefill_hosts: int) -> None:
        self.schedule = Schedule(buffers=False)
        self.requests: list[Request] = []
        self._serving = serving
        self._idle: list[list[Column]] = [[] for _ in range(prefill_hosts)]
        """What each prefill host does last."""

    def serve(self, prompt: Prompt, source: int, target: int) -> None:
        """Takes a prompt from its arrival at a prefill host to its first token at a decode host."""
        arrival = self.schedule.work(source, 0, not_before_ns=prompt.arrives_ns)
        layers = self._prefill(prompt, source, arrival)
        size_bytes = prompt.tokens * self._serving.layer_bytes_of_token
        sent = [self.schedule.send(source, target, size_bytes, after=[over]) for over in layers]
        complete = self.schedule.work(target, 0, sent)
        answer = self.schedule.work(target, self._serving.first_token_ns, [complete])
        self._ask(Asks.PROMPT, arrival, answer, size_bytes * len(sent))
        self._ask(Asks.KV_TRANSFER, sent[0], complete, size_bytes * len(sent))
        self._ask(Asks.KV_WAIT, sent[-1], complete, size_bytes)

    def _prefill(self, prompt: Prompt, source: int, arrival: Column) -> list[Column]:
        """Returns what each layer's message waits for."""
        ends = self._ends_ns(prompt)
        after = [arrival, *self._idle[source]]
        over: list[Column] = []
        for lasts_ns in np.diff(ends, prepend=0).tolist():
            over.append(self.schedule.work(source, lasts_ns, after))
            after = [over[-1]]
        self._idle[source] = after
        return over if self._serving.layer_wise else over * self._serving.layers

    def _ends_ns(self, prompt: Prompt) -> Column:
        """When each part of the prefill is over, counted from its start."""
        parts = self._serving.layers if self._serving.layer_wise else 1
        shares = np.arange(1, parts + 1) / parts
        ends: Column = np.rint(prompt.tokens * self._serving.token_ns * shares).astype(np.int64)
        return ends

    def _ask(self, asks: Asks, begins: Column, ends: Column, carries_bytes: int) -> None:
        self.requests.append(Request(int(begins[0]), int(ends[0]), asks, carries_bytes))
