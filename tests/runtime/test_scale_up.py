"""Traffic inside servers: GPUs that talk without a NIC, against closed forms.

A message of m bytes crosses the server's switch: a byte lasts 2222/1000 ps at 3.6 Tb/s, the two
cables take 5 ns each, and the cut-through switch takes 200 ns.
"""

from __future__ import annotations

import pytest

from emu.measure.observation import Observation
from tests.support.idle_star import message_ns
from tests.support.small_fabrics import spec_of, started

RAILS = """
topology: {kind: rail, servers: 4, rails: 4, spines: 1, links: {host: {delay: 500ns}}}
switches: {pfc: {xoff: 96KB}, buffer: 32MB}
hosts: {gpus: 4}
"""
INSIDE_BYTE_NS = 8 / 3600


def inside_ns(size: int) -> float:
    """Two cables, the switch, the first packet's header, and all packets once."""
    wire = size + 26 * -(-size // 4096) + 16
    return 2 * 5 + 200 + 20 * INSIDE_BYTE_NS + wire * INSIDE_BYTE_NS


def observed(traffic: str, *settings: str) -> Observation:
    """The observation after the entry has finished."""
    with started(spec_of(RAILS + f"traffic: [{traffic}]\n", *settings)) as run:
        while not run.finished and run.now_ns < 50_000_000:
            run.run_until(run.now_ns + 10_000)
        return run.observe()


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_gpus_of_one_server_do_not_use_the_fabric(fabric: str) -> None:
    """Their messages cross the server's switch on either fabric; other messages cross its ports."""
    entry = "{name: p, pattern: pair, from: [h1, h2], to: [h3, h6], size: 1MB}"
    seen = observed(entry, f"fabric={fabric}")
    inside, outside = (next(f for f in seen.flows if f.src == src) for src in ("h1", "h2"))
    assert inside.completed
    assert outside.completed
    assert inside.end_ns == pytest.approx(inside_ns(1_000_000), rel=0.03)
    assert sum(seen.scale_up["h1:nvswitch1"]["tx_packets"]) == 245
    assert sum(seen.ports["h1:rail1"]["tx_packets"]) == 0
    assert sum(seen.ports["h2:rail2"]["tx_packets"]) == 245
    assert all(sum(own["rx_credit_violations"]) == 0 for own in seen.scale_up.values())


def test_scale_up_credit_bounds_the_rate_of_a_gpu() -> None:
    """A buffer of packets per credit loop: cable, header, switch, serialisation, and the update
    back."""
    buffer, latency_ns = 32_768, 1000
    seen = observed(
        "{name: p, pattern: pair, from: h1, to: h3, size: 4MB}",
        f"hosts.scale_up.buffer={buffer}B",
        f"hosts.scale_up.latency={latency_ns}ns",
    )
    (flow,) = seen.flows
    packet = 4096 + 26
    loop_ns = 2 * 5 + latency_ns + (20 + packet + 6) * INSIDE_BYTE_NS
    in_buffer = buffer // (-(-packet // 64) * 64)
    assert flow.end_ns is not None
    assert 4_000_000 / flow.end_ns == pytest.approx(in_buffer * 4096 / loop_ns, rel=0.02)


@pytest.mark.parametrize(("servers", "gpus"), [(2, 4), (4, 4), (4, 2), (1, 4)])
def test_hierarchical_all_reduce_uses_both_fabrics(servers: int, gpus: int) -> None:
    """2(g - 1) messages of S/g inside, 2(N - 1) of S/(g N) along each rail, one after another."""
    size = 16_384 * servers * gpus
    ranks = ",".join(f"h{4 * s + g + 1}" for s in range(servers) for g in range(gpus))
    seen = observed(
        "{name: a, pattern: all-reduce, algorithm: hierarchical, "
        f"gpus: {gpus}, among: [{ranks}], size: {size}B}}"
    )
    (job,) = seen.jobs
    inside = 2 * (gpus - 1) * inside_ns(size // gpus)
    along = 2 * (servers - 1) * message_ns(size // gpus // servers)
    assert job.wrong == 0
    assert job.took_ns == pytest.approx(inside + along, rel=0.03)


def test_scale_up_makes_an_all_reduce_faster() -> None:
    """The same 16 GPUs: in one ring, which uses one NIC of each server, and in two tiers."""
    flat, tiers = (
        observed(f"{{name: a, pattern: all-reduce, among: h1-h16, size: 2MB, {how}}}").jobs[0]
        for how in ("chunk: 16KB, channels: 1", "algorithm: hierarchical, gpus: 4, chunk: 16KB")
    )
    assert flat.wrong == tiers.wrong == 0
    assert flat.took_ns is not None
    assert tiers.took_ns is not None
    assert 3 * tiers.took_ns < flat.took_ns
