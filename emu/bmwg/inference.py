"""KPIs of inference: what one layer of experts dispatches, and what needs a serving workload.

    T_dispatch = B k H bytes / N      bytes that each of N accelerators dispatches for a layer

B is the number of tokens of all accelerators together, k the experts of each token, and H bytes the
size of a token. What goes to an expert on the same accelerator is included, so fewer bytes cross
the fabric. The draft's own table of T_dispatch does not follow from this formula.

Time to first token, inter-token latency and tokens per second need a workload of requests. S_KV and
the KV transfer need its cache. Scaling efficiency compares layers of several sizes:
latency(8) / latency(N) x N / 8.
"""

from __future__ import annotations

from emu.bmwg.kpi import INFER, TERM, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.spec.traffic.training import Experts
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
    "From a request to its first token; references 500 ms, and 300 ms for the fabric's part, P99.",
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
    "2 L H_kv D C bytes: layers, KV heads, head size, tokens, bytes of an element.",
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
KPIS = (DISPATCH, TTFT, ITL, S_KV, SCALING)
_NO_REQUESTS = "the workload has no prefill and decode of requests"


def dispatch_bytes(tokens: int, top_k: int, token_bytes: int, accelerators: int) -> float:
    """T_dispatch. `tokens`: of all accelerators together."""
    return tokens * top_k * token_bytes / accelerators


def measured(trial: Trial) -> Measured:
    """T_dispatch of each layer of experts; the others are not defined."""
    layers = {n: e for n, e in trial.run.entries.items() if isinstance(e, Experts)}
    for name, entry in layers.items():
        ranks = len(entry.among)
        every = entry.tokens * ranks
        size = dispatch_bytes(every, entry.top_k, entry.token_bytes, ranks)
        token = format_size(entry.token_bytes)
        inputs = f"B {every:,} tokens, k {entry.top_k}, {token} a token, N {ranks}"
        yield Figure(DISPATCH, size, name, inputs)
    if not layers:
        yield Undefined(DISPATCH, "the workload has no layer of experts (pattern: moe)")
    yield from (Undefined(kpi, _NO_REQUESTS) for kpi in (TTFT, ITL, S_KV))
    yield Undefined(SCALING, "it compares layers of 8 and of N ranks, and a trial has one size")
