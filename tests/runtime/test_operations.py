"""All operations of a spec's traffic, with each kind of loss recovery, on the virtual clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.errors import HostError
from emu.measure.observation import Observation
from emu.runtime.virtual import VirtualFabric
from emu.spec.model import Spec
from emu.subnet.sm_sweeps import manage
from emu.subnet.subnet import Subnet
from tests.support.small_fabrics import ONE_SWITCH, PAIR, spec_of

OPS = ("write", "write-imm", "send", "send-imm", "send-inv", "read")
ATOMICS = ("fetch-add", "cmp-swap")
RECOVERY = ("go-back-n", "go-back-0", "selective-repeat")


@pytest.mark.parametrize("recovery", RECOVERY)
@pytest.mark.parametrize("op", OPS)
def test_every_byte_arrives_despite_losses(op: str, recovery: str) -> None:
    """A flow completes only if its bytes, compared one by one, are in place."""
    spec = spec_of(
        PAIR,
        f"traffic.0.op={op}",
        "traffic.0.size=100KB",
        "traffic.0.count=8",
        f"hosts.nic.recovery={recovery}",
        "faults=[{loss: {cable: 'left:right', every: 41}}]",
    )
    (flow,) = _run(spec).flows
    assert flow.completed
    assert flow.resent > 0


def test_message_of_256_mib_arrives() -> None:
    """With random bytes, each of them compared; RDMA allows messages of 2 GiB."""
    (flow,) = _run(spec_of(PAIR, "traffic.0.size=256MiB")).flows
    assert (flow.bytes, flow.completed) == (2**28, True)


def test_messages_beyond_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first byte is drawn. Elided payloads take no memory."""
    monkeypatch.setattr("emu.bindings.memory_regions.free_memory_bytes", lambda: 1_000_000)
    with pytest.raises(HostError, match=r"take 2\.\d+ MB of memory, and 1 MB are free; send less"):
        _run(spec_of(PAIR))
    (flow,) = _run(spec_of(PAIR, "payload=elided")).flows
    assert flow.completed


@pytest.mark.parametrize("outstanding", [1, 8])
@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize("op", ATOMICS)
def test_every_atomic_is_executed_once(
    op: str, fabric: str, outstanding: int, tmp_path: Path
) -> None:
    """Four hosts add to words of one host, each to its own, over a lossy cable."""
    spec = spec_of(
        ONE_SWITCH,
        f"fabric={fabric}",
        "traffic=[{name: count, pattern: incast, from: h2-h5, to: h1, size: 8, count: 60, "
        f"op: {op}, outstanding: {outstanding}}}]",
        "faults=[{loss: {cable: 'h1:s1', every: 23}}]",
    )
    subnet = manage(spec, spec.topology.build(), tmp_path) if fabric == "ib" else None
    flows = _run(spec, subnet).flows
    assert [flow.completed for flow in flows] == [True] * 4
    assert sum(flow.resent for flow in flows) > 0


@pytest.mark.parametrize(
    ("transport", "op"),
    [
        *(("uc", op) for op in ("write", "write-imm", "send", "send-imm")),
        *(("ud", op) for op in ("send", "send-imm")),
    ],
)
def test_unreliable_transports_deliver_without_loss(transport: str, op: str) -> None:
    """Every byte arrives, and the run waits for it although no ACK comes."""
    seen = _run(_unreliable(transport, op))
    (flow,) = seen.flows
    assert flow.completed
    assert flow.end_ns is not None
    assert seen.nics is not None
    assert seen.nics["h2"]["tx_packets"] == 0


@pytest.mark.parametrize("transport", ["uc", "ud"])
def test_unreliable_transports_do_not_recover_losses(transport: str) -> None:
    """The flow is not completed, and each lost packet loses only its own message."""
    lost = _unreliable(transport, "send", "faults=[{loss: {cable: 'left:right', every: 4}}]")
    with VirtualFabric(lost, lost.topology.build()) as run:
        run.start()
        while not run.finished:
            run.run_until(run.now_ns + 100_000)
        delivered, now_ns = run.progress().bytes_done, run.now_ns
        (flow,) = run.observe().flows
    assert not flow.completed
    assert flow.end_ns is None
    packets = 1 if transport == "ud" else 2  # of one message
    assert delivered == (20 - 20 * packets // 4) * SIZE[transport]
    assert now_ns < 3_000_000, "the run waited longer than a millisecond for lost packets"


SIZE = {"ud": 1000, "uc": 5000}


@pytest.mark.parametrize("transport", SIZE)
def test_unreliable_messages_over_a_long_cable_arrive(transport: str) -> None:
    """They are on the way for 2 ms, longer than packets wait in queues."""
    (flow,) = _run(_unreliable(transport, "send", "topology.links.fabric.delay=2ms")).flows
    assert flow.completed
    assert flow.delivered_bytes == 20 * SIZE[transport]


def _unreliable(transport: str, op: str, *changes: str) -> Spec:
    return spec_of(
        PAIR,
        f"traffic.0.op={op}",
        f"traffic.0.size={SIZE[transport]}",
        "traffic.0.count=20",
        f"traffic.0.transport={transport}",
        *changes,
    )


def _run(spec: Spec, subnet: Subnet | None = None) -> Observation:
    with VirtualFabric(spec, spec.topology.build(), subnet) as run:
        run.start()
        while not run.finished:
            run.run_until(run.now_ns + 100_000)
        return run.observe()
