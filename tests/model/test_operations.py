"""Operations of a spec's traffic, and recovery by choice, on the virtual clock."""

from __future__ import annotations

import pytest

from emu.shim.virtual import VirtualFabric
from tests.model.fabrics import PAIR, spec_of

OPS = ("write", "write-imm", "send", "send-imm", "read")
RECOVERY = ("go-back-n", "go-back-0", "selective-repeat")


@pytest.mark.parametrize("recovery", RECOVERY)
@pytest.mark.parametrize("op", OPS)
def test_every_byte_arrives_in_spite_of_losses(op: str, recovery: str) -> None:
    """A flow is completed when its bytes, compared one by one, are where they belong."""
    spec = spec_of(
        PAIR,
        f"traffic.0.op={op}",
        "traffic.0.size=100KB",
        "traffic.0.count=8",
        f"hosts.nic.recovery={recovery}",
        "faults=[{loss: {cable: 'left:right', every: 41}}]",
    )
    with VirtualFabric(spec, spec.topology.build()) as run:
        run.start()
        while not run.finished:
            run.run_until(run.now_ns + 100_000)
        (flow,) = run.observe().flows
    assert flow.completed
    assert flow.retransmitted_packets > 0
