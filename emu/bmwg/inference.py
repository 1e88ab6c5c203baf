"""KPIs of inference: what one layer of experts dispatches, and how long prompts wait.

    T_dispatch = B k H bytes / N      bytes that each of N accelerators dispatches for a layer

B is the number of tokens of all accelerators together, k the experts of each token, and H bytes the
size of a token. What goes to an expert on the same accelerator is included, so fewer bytes cross
the fabric. The draft's own table of T_dispatch does not follow from this formula.

    S_KV = 2 L H_kv D C bytes         the KV cache of a prompt of C tokens (traffic/models)

TTFT, KV transfer and KV wait are those of `emu.measure.prompts`. Inter-token latency needs the
tokens after the first, which no workload here has. Scaling efficiency compares layers of several
sizes: latency(8) / latency(N) x N / 8.
"""

from __future__ import annotations

from emu.bmwg.kpi import INFER, TERM, Figure, Kpi, Measured, Table, Target, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.measure.prompts import KV_WAIT_MARK_NS, TTFT_MARK_NS
from emu.measure.requests import Latency
from emu.report.run_view import RunFacts
from emu.spec.traffic.experts import Experts
from emu.spec.traffic.inference import Inference
from emu.units import format_size

DISPATCH = Kpi(
    "t_dispatch",
    "dispatch payload (T_dispatch)",
    Table.SECONDARY,
    Unit.BYTES,
    "B k H bytes / N: bytes that each accelerator dispatches for a layer of experts.",
    TERM,
)
TTFT = Kpi(
    "ttft",
    "time to first token (TTFT)",
    Table.PRIMARY,
    Unit.NS,
    "P99 of the time from the arrival of a prompt to its first token.",
    INFER,
    target=Target(TTFT_MARK_NS),
)
KV_WAIT = Kpi(
    "kv_wait",
    "fabric's part of TTFT (KV wait)",
    Table.PRIMARY,
    Unit.NS,
    "P99 of the time from the end of a prompt's prefill until its KV cache is complete.",
    INFER,
    target=Target(KV_WAIT_MARK_NS),
)
KV_TRANSFER = Kpi(
    "kv_transfer",
    "KV cache transfer time",
    Table.SECONDARY,
    Unit.NS,
    "P99 of the time from the first message of a KV cache to its last byte.",
    INFER,
)
ITL = Kpi(
    "itl",
    "inter-token latency (ITL)",
    Table.PRIMARY,
    Unit.NS,
    "Between two tokens; references 50 ms, and 5 ms for the fabric's part, P99.",
    INFER,
)
S_KV = Kpi(
    "s_kv",
    "KV cache of a request (S_KV)",
    Table.SECONDARY,
    Unit.BYTES,
    "2 L H_kv D C bytes: layers, KV heads, head size, tokens, bytes of an element; of the longest "
    "prompt.",
    TERM,
)
SCALING = Kpi(
    "moe_scaling_efficiency",
    "MoE scaling efficiency",
    Table.SECONDARY,
    Unit.RATIO,
    "latency(EP 8) / latency(EP N) x N / 8.",
    INFER,
)
KPIS = (DISPATCH, TTFT, KV_WAIT, KV_TRANSFER, ITL, S_KV, SCALING)
_OF_PROMPTS = (TTFT, KV_WAIT, KV_TRANSFER, S_KV)


def dispatch_bytes(tokens: int, top_k: int, token_bytes: int, accelerators: int) -> float:
    """T_dispatch. `tokens`: of all accelerators together."""
    return tokens * top_k * token_bytes / accelerators


def measured(trial: Trial) -> Measured:
    """T_dispatch of each layer of experts, and the times of each entry's prompts."""
    yield from _dispatched(trial.run)
    yield from _prompts(trial.run)
    yield Undefined(ITL, "prompts end with their first token")
    yield Undefined(SCALING, "it compares layers of 8 and of N ranks, and a trial has one size")


def _dispatched(run: RunFacts) -> Measured:
    layers = {n: e for n, e in run.entries.items() if isinstance(e, Experts)}
    for name, entry in layers.items():
        ranks = len(entry.among)
        every = entry.tokens * ranks
        size = dispatch_bytes(every, entry.top_k, entry.token_bytes, ranks)
        token = format_size(entry.token_bytes)
        inputs = f"B {every:,} tokens, k {entry.top_k}, {token} a token, N {ranks}"
        yield Figure(DISPATCH, size, name, inputs)
    if not layers:
        yield Undefined(DISPATCH, "the workload has no layer of experts (pattern: moe)")


def _prompts(run: RunFacts) -> Measured:
    for own in run.prompts:
        entry = run.entries[own.traffic]
        assert isinstance(entry, Inference)
        for kpi, times in ((TTFT, own.ttft), (KV_WAIT, own.wait), (KV_TRANSFER, own.transfer)):
            yield _p99(kpi, times)
        yield Figure(S_KV, *_longest_cache(entry))
    if not run.prompts:
        reason = "the workload has no prefill and decode of prompts (pattern: inference)"
        yield from (Undefined(kpi, reason) for kpi in _OF_PROMPTS)


def _p99(kpi: Kpi, times: Latency) -> Figure | Undefined:
    if times.p99_ns is None:
        return Undefined(kpi, "no prompt was answered", times.traffic)
    unfinished = f", {times.unfinished:,} unfinished" if times.unfinished else ""
    return Figure(kpi, times.p99_ns, times.traffic, f"n {times.finished:,}{unfinished}")


def _longest_cache(entry: Inference) -> tuple[int, str, str]:
    """S_KV of the longest prompt, the name of the entry, and what it is computed from."""
    sizes, tokens = entry.sizes, max(entry.tokens)
    size = sizes.layers * sizes.kv_elements * entry.element_bytes * tokens
    heads = f"H_kv {sizes.kv_heads}, D {sizes.head_size}"
    each = f"{entry.element_bytes} bytes an element"
    return size, entry.name, f"L {sizes.layers}, {heads}, C {tokens:,} tokens, {each}"
