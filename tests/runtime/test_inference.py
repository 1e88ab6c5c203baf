"""Inference on the virtual clock: one prompt takes what arithmetic says.

Two hosts and a switch, cables of 100 Gb/s and 500 ns, 600 ns in the switch.
"""

from __future__ import annotations

import pytest

from emu.measure.prompts import PromptFigures, prompt_figures
from tests.support.small_fabrics import finish, spec_of, star, started

LAYERS, TOKENS, TOKEN_NS, FIRST_TOKEN_NS = 2, 64, 500, 3_000
LAYER_BYTES = TOKENS * 2 * 2 * 16 * 2
"""64 tokens with a key and a value, 2 heads of 16 elements of 2 bytes: 8,192 bytes, two packets."""
INFERENCE = star(2) + (
    "traffic:\n"
    "  - {name: chat, pattern: inference, from: h1, to: h2, layers: 2, hidden: 64, heads: 4,\n"
    "     kv_heads: 2, prompts: 1, arrivals: 1000000, tokens: 64, token_time: 500ns,\n"
    "     first_token: 3us, start: 5us}\n"
)
OVERHEAD = {"roce": 82, "ib": 26}
RETH = 16


def figures_of(fabric: str, *settings: str) -> PromptFigures:
    given = (f"fabric={fabric}", "switches.latency=600ns", *settings)
    with started(spec_of(INFERENCE, *given)) as run:
        assert all(flow.completed for flow in finish(run).flows.values())
        (figures,) = prompt_figures(run.observe().requests)
    return figures


def transfer_ns(fabric: str, layers: int) -> float:
    """Bits of all packets on one cable, the first packet once more where the switch stores it, and
    the delays of the way."""
    packets = [4096 + OVERHEAD[fabric] + RETH, 4096 + OVERHEAD[fabric]] * layers
    waited = packets[0] if fabric == "roce" else 20
    return (waited + sum(packets)) * 0.08 + 2 * 500 + 600


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_ttft_of_a_whole_transfer_is_the_sum_of_its_parts(fabric: str) -> None:
    """Prefill, both layers on the cable, first token."""
    figures = figures_of(fabric, "traffic.chat.transfer=whole")
    moved = transfer_ns(fabric, LAYERS)
    assert figures.transfer.max_ns == pytest.approx(moved, abs=7)
    assert figures.wait.max_ns == figures.transfer.max_ns
    expected = TOKENS * TOKEN_NS + moved + FIRST_TOKEN_NS
    assert figures.ttft.max_ns == pytest.approx(expected, abs=7)
    assert figures.share_p99 == pytest.approx(moved / expected, rel=0.01)


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_layer_wise_transfer_waits_for_the_last_layer_alone(fabric: str) -> None:
    """The first of two layers is there before the second is computed."""
    figures = figures_of(fabric)
    last = transfer_ns(fabric, 1)
    assert figures.wait.max_ns == pytest.approx(last, abs=7)
    assert figures.transfer.max_ns == pytest.approx(TOKENS * TOKEN_NS / 2 + last, abs=7)
    expected = TOKENS * TOKEN_NS + last + FIRST_TOKEN_NS
    assert figures.ttft.max_ns == pytest.approx(expected, abs=7)
