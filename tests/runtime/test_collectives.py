"""Collectives on an idle fabric against closed forms, and their sums against numpy's.

n ranks around one switch; a message of m bytes takes t(m) + a(m) (see `idle_star`). The tolerance
is 3 %, because data share the line with acknowledgements of the other direction.
"""

from __future__ import annotations

from math import log2

import pytest

from emu.errors import UsageError
from emu.measure.records import JobRecord
from emu.runtime.virtual import VirtualFabric
from tests.support.idle_star import latency_ns, message_ns, wire_ns
from tests.support.small_fabrics import spec_of, star, started
from traffic.collectives.collective import collective
from traffic.job import Job, Kind


def finished(run: VirtualFabric) -> tuple[JobRecord, ...]:
    while not run.finished and run.now_ns < 1_000_000_000:
        run.run_until(run.now_ns + 50_000)
    return run.observe().jobs


def job_of(ranks: int, entry: str, *settings: str) -> JobRecord:
    """The only collective of a run on `ranks` hosts."""
    spec = spec_of(
        star(ranks) + f"traffic: [{{name: job, among: h1-h{ranks}, {entry}}}]\n",
        "switches.pfc={xoff: 96KB}",
        "switches.buffer=64MB",
        *settings,
    )
    with started(spec) as run:
        (job,) = finished(run)
    return job


def took_ns(job: JobRecord) -> int:
    assert job.wrong in (0, None)
    assert job.took_ns is not None
    return job.took_ns


@pytest.mark.parametrize("ranks", [2, 3, 5, 8, 16, 64])
def test_ring_takes_its_steps_one_after_another(ranks: int) -> None:
    """2(n - 1)·(t(S/n) + a)."""
    piece = 16_384
    job = job_of(ranks, f"pattern: all-reduce, size: {piece * ranks}B")
    assert took_ns(job) == pytest.approx(2 * (ranks - 1) * message_ns(piece), rel=0.03)


@pytest.mark.parametrize("pattern", ["reduce-scatter", "all-gather"])
@pytest.mark.parametrize("ranks", [2, 7, 32])
def test_half_a_ring_takes_half_the_steps(ranks: int, pattern: str) -> None:
    """(n - 1)·(t(S/n) + a)."""
    piece = 32_768
    job = job_of(ranks, f"pattern: {pattern}, size: {piece * ranks}B")
    assert took_ns(job) == pytest.approx((ranks - 1) * message_ns(piece), rel=0.03)


@pytest.mark.parametrize("chunks", [2, 4, 16])
def test_chunks_hide_the_latency_of_a_ring(chunks: int) -> None:
    """Either a link is always busy, or a chunk is always on its way:

    max(2(n - 1)·k·t(c) + a, 2(n - 1)·(t(c) + a) + (k - 1)·t(c)),  k chunks of c bytes
    """
    ranks, chunk = 8, 8192
    steps, t = 2 * (ranks - 1), wire_ns(chunk)
    job = job_of(ranks, f"pattern: all-reduce, size: {ranks * chunks * chunk}B, chunk: {chunk}B")
    busy = steps * chunks * t + latency_ns(chunk)
    chained = steps * message_ns(chunk) + (chunks - 1) * t
    assert took_ns(job) == pytest.approx(max(busy, chained), rel=0.03)


@pytest.mark.parametrize("ranks", [2, 4, 16, 64])
def test_halving_and_doubling_pays_few_latencies(ranks: int) -> None:
    """2·log2(n)·a + 2(n - 1)/n·S/B, that is twice the messages of S/2, S/4, ..., S/n."""
    size = 8192 * ranks
    halves = [size >> step for step in range(1, int(log2(ranks)) + 1)]
    job = job_of(ranks, f"pattern: all-reduce, algorithm: halving-doubling, size: {size}B")
    assert took_ns(job) == pytest.approx(2 * sum(map(message_ns, halves)), rel=0.03)


def test_ranks_beyond_a_power_of_two_hand_over_first() -> None:
    """Two more messages of the whole buffer, before and after, and the delay where they meet
    others."""
    size = 262_144
    four, six = (
        took_ns(job_of(n, f"pattern: all-reduce, algorithm: halving-doubling, size: {size}B"))
        for n in (4, 6)
    )
    assert 2 * message_ns(size) < six - four < 4 * message_ns(size)


@pytest.mark.parametrize("levels", [1, 2, 3, 5])
def test_tree_climbs_and_descends_level_by_level(levels: int) -> None:
    """Of 2^d - 1 ranks: 2(d - 1) levels, at each of which one link carries two messages."""
    size, ranks = 65_536, 2 ** (levels + 1) - 1
    job = job_of(ranks, f"pattern: all-reduce, algorithm: tree, size: {size}B")
    level = 2 * wire_ns(size) + latency_ns(size)
    assert took_ns(job) == pytest.approx(2 * levels * level, rel=0.03)


def tree_took(algorithm: str, ranks: int, chunk: int, how: str) -> tuple[int, float, float]:
    """The duration of an all-reduce of S; S/B; and the time of the first chunk up and down the
    tree."""
    size = 4_000_000
    entry = f"algorithm: {algorithm}, size: {size}B, chunk: {chunk}B"
    job = job_of(ranks, f"pattern: all-reduce, {entry}", "payload=elided", how)
    headers = (4096 + 26) / (4096 + 82) if how == "fabric=ib" else 1
    once = size / chunk * wire_ns(chunk) * headers
    return took_ns(job), once, 2 * int(log2(ranks)) * message_ns(chunk)


@pytest.mark.parametrize("how", ["switches.pfc=off", "switches.pfc={xoff: 96KB}", "fabric=ib"])
@pytest.mark.parametrize(("algorithm", "times"), [("tree", 3), ("double-tree", 2)])
@pytest.mark.parametrize("ranks", [8, 15, 33])
def test_trees_send_the_buffer_twice_or_thrice(
    ranks: int, algorithm: str, times: int, how: str
) -> None:
    """3·S/B at the inner ranks of one tree, 2·S/B with two; 3 % more where senders share a link,
    and the first chunk's way. Sums on their way down do not wait behind data on the way up."""
    took, once, first = tree_took(algorithm, ranks, 16_000, how)
    assert times * once < took < 1.03 * times * once + first


@pytest.mark.parametrize("how", ["switches.pfc={xoff: 96KB}", "fabric=ib"])
def test_chunks_too_large_for_the_buffers_slow_a_tree(how: str) -> None:
    """Eight chunks of each neighbour do not fit into a port's buffer: head-of-line blocking."""
    took, once, first = tree_took("tree", 16, 64_000, how)
    assert 1.05 * 3 * once + first < took < 1.25 * 3 * once + first


@pytest.mark.parametrize("ranks", [2, 8, 33])
def test_broadcast_is_a_pipeline(ranks: int) -> None:
    """(k + d - 1)·t(c) + d·a over d hops, of k chunks."""
    chunk, chunks, hops = 32_768, 32, ranks - 1
    job = job_of(ranks, f"pattern: broadcast, size: {chunks * chunk}B, chunk: {chunk}B")
    expected = (chunks + hops - 1) * wire_ns(chunk) + hops * latency_ns(chunk)
    assert took_ns(job) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("piece", [4096, 16_384, 65_536, 262_144])
@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8, 12, 16, 33, 64])
def test_all_to_all_fills_every_link(ranks: int, piece: int) -> None:
    """(n - 1)·t(S/n) + a: no packet waits for a packet of another rank."""
    job = job_of(ranks, f"pattern: alltoall, size: {piece * ranks}B", "payload=elided")
    expected = (ranks - 1) * wire_ns(piece) + latency_ns(piece)
    assert took_ns(job) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(
    ("pattern", "factor"),
    [
        ("all-reduce", 2 * 7 / 8),
        ("reduce-scatter", 7 / 8),
        ("all-gather", 7 / 8),
        ("alltoall", 7 / 8),
        ("broadcast", 1),
    ],
)
def test_bus_bandwidth_is_that_of_nccl_tests(pattern: str, factor: float) -> None:
    """busbw = S/t times the share of S that each rank sends; near the line rate when chunks hide
    latency."""
    job = job_of(8, f"pattern: {pattern}, size: 4MB, chunk: 16KB", "payload=elided")
    assert job.wrong is None, "elided payloads are not checked"
    algbw = 4_000_000 / (took_ns(job) * 1e-9)
    assert job.algbw_bytes_per_s == pytest.approx(algbw)
    assert job.busbw_bytes_per_s == pytest.approx(algbw * factor)
    assert 0.9 * 12.5e9 < algbw * factor < 12.5e9


@pytest.mark.parametrize("recovery", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("algorithm", ["ring", "double-tree", "halving-doubling"])
def test_sums_are_correct_under_loss(algorithm: str, recovery: str) -> None:
    """One cable loses every hundredth packet; a retransmitted summand is added once."""
    job = job_of(
        6,
        f"pattern: all-reduce, algorithm: {algorithm}, size: 1MB, chunk: 20KB",
        f"hosts.nic.recovery={recovery}",
        "faults=[{at: 0us, loss: {cable: s1:h3, every: 100}}]",
    )
    assert job.wrong == 0
    assert job.end_ns is not None


def test_parallel_jobs_have_separate_buffers() -> None:
    """Two all-reduces and an all-gather on the same hosts share the links but no memory."""
    spec = spec_of(
        star(6)
        + """
traffic:
  - {name: a, pattern: all-reduce, among: h1-h6, size: 400KB}
  - {name: b, pattern: all-reduce, algorithm: double-tree, among: h4-h6, size: 300KB, chunk: 9KB}
  - {name: c, pattern: all-gather, among: h2-h5, size: 200KB, start: 5us}
  - {name: d, pattern: pair, from: h1, to: h6, size: 100KB}
"""
    )
    with started(spec) as run:
        jobs = finished(run)
        flows = run.observe().flows
    assert [(job.name, job.ranks, job.wrong) for job in jobs] == [
        ("a", 6, 0),
        ("b", 3, 0),
        ("c", 4, 0),
    ]
    assert jobs[2].start_ns == 5_000
    assert all(flow.completed for flow in flows)


def test_sums_are_the_same_over_infiniband() -> None:
    """The ring is a little faster with credits: each packet has 56 bytes less."""
    roce, ib = (
        job_of(8, "pattern: all-reduce, size: 1MB", f"fabric={fabric}", "switches.latency=600ns")
        for fabric in ("roce", "ib")
    )
    assert roce.wrong == ib.wrong == 0
    assert 0.95 < took_ns(ib) / took_ns(roce) < 1


def test_workload_with_a_missing_rank_makes_no_fabric() -> None:
    """A user's own workload with a rank that the fabric does not have."""
    spec = spec_of(star(3))
    ranks = ("h1", "h2", "h4")
    workload = collective(Job("sum", Kind.ALL_REDUCE, "ring", ranks, 1200))
    with pytest.raises(UsageError, match=r"^flow sum\.h2-h4 needs h4, and there is no such host$"):
        VirtualFabric(spec, spec.topology.build(), workload=workload)


def test_own_workload_replaces_that_of_the_spec() -> None:
    """The user's workload comes from the same functions."""
    spec = spec_of(star(3))
    workload = collective(Job("sum", Kind.ALL_REDUCE, "ring", ("h1", "h2", "h3"), 1200))
    with VirtualFabric(spec, spec.topology.build(), workload=workload) as run:
        run.start()
        (job,) = finished(run)
    assert (job.ranks, job.wrong) == (3, 0)
