"""What holds for credits whatever the fabric, its load and its faults: drawn at random.

25 times each; 2,000 times, other ones with each run, by hand:

    pytest tests/model/test_credit_properties.py --hypothesis-profile long
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emu.shim.virtual import VirtualFabric
from tests.limits import examples
from tests.model.fabrics import ONE_SWITCH, Outcome, finish, look, spec_of, started

BLOCK = 64
LIMIT = examples(25)

sizes = st.integers(min_value=1, max_value=120_000)
flows = st.lists(
    st.tuples(st.integers(2, 5), st.integers(0, 7), sizes, st.integers(0, 20)),
    min_size=1,
    max_size=6,
)
lanes = st.sampled_from([1, 2, 4, 8])
buffers = st.integers(min_value=5, max_value=128)


def incast(flows: list[tuple[int, int, int, int]]) -> str:
    """Writes to h1: from whom, on which service level, how much, from when on (us)."""
    entries = "".join(
        f"  - {{name: f{n}, pattern: pair, from: h{src}, to: h1, op: write, size: {size}, "
        f"priority: {sl}, start: {start}us}}\n"
        for n, (src, sl, size, start) in enumerate(flows)
    )
    return f"{ONE_SWITCH}traffic:\n{entries}"


def ib(vls: int, buffer_kib: int) -> tuple[str, ...]:
    weights = ", ".join(f"{vl}: 64" for vl in range(vls))
    return (
        "fabric=ib",
        f"switches.credits.vls={vls}",
        f"switches.credits.buffer={buffer_kib}KiB",
        f"subnet.vl_arbitration={{high: {{}}, low: {{{weights}}}}}",
    )


def held(run: VirtualFabric, vls: int) -> int:
    """The most that any lane's buffer holds at this moment, in bytes."""
    return max(run.fabric.held(port, vl) for port in run.topology.ports["s1"] for vl in range(vls))


def credit(run: VirtualFabric, vls: int) -> int:
    """The most that any port may send on a lane at this moment, in bytes."""
    return max(max(run.port(name).credit_bytes[:vls]) for name in run.topology.port_named)


def dropped(outcome: Outcome) -> int:
    reasons = ("rx_buf_discard", "tx_queue_discard", "no_route", "no_lane", "hoq_discard")
    return sum(outcome.total(reason) for reason in (*reasons, "rx_credit_violations"))


@given(flows, lanes, buffers)
@LIMIT
def test_no_packet_is_dropped_for_want_of_buffer(
    flows: list[tuple[int, int, int, int]], vls: int, buffer_kib: int
) -> None:
    """Whatever the load: no buffer holds more than it has room for, nobody may send more than
    that, and all arrives."""
    with started(spec_of(incast(flows), *ib(vls, buffer_kib))) as run:
        while not run.finished and run.now_ns < 1_000_000:
            run.run_until(run.now_ns + 1_500)
            assert held(run, vls) <= buffer_kib * 1024
            assert credit(run, vls) <= buffer_kib * 1024
        assert run.finished
        outcome = look(run)
    assert dropped(outcome) == 0


@given(flows, lanes, buffers)
@LIMIT
def test_all_blocks_that_were_sent_are_received_and_freed(
    flows: list[tuple[int, int, int, int]], vls: int, buffer_kib: int
) -> None:
    """When all is over no buffer holds anything, and both ends of a cable have the same count."""
    with started(spec_of(incast(flows), *ib(vls, buffer_kib))) as run:
        finish(run)
        run.run_until(run.now_ns + 5_000)
        outcome = look(run)
        assert held(run, vls) == 0
    for host in ("h1", "h2", "h3", "h4", "h5"):
        for near, far in ((f"s1:{host}", f"{host}:s1"), (f"{host}:s1", f"s1:{host}")):
            assert outcome.ports[near]["tx_bytes"] == outcome.ports[far]["rx_bytes"]


@given(sizes, st.integers(2, 40), st.sampled_from(["h2:s1", "s1:h1"]))
@LIMIT
def test_lost_and_damaged_packets_cost_no_credit_for_ever(
    size: int, every: int, cable: str
) -> None:
    """FCTBS in the next update repairs what the receiver did not count: the flow goes on."""
    for kind in ("loss", "corruption"):
        fault = f"faults=[{{for: 100us, {kind}: {{cable: '{cable}', every: {every}}}}}]"
        text = incast([(2, 0, 400_000 + size, 0)])
        with started(spec_of(text, *ib(1, 16), fault, "hosts.nic.timeout=3")) as run:
            run.run_until(100_000)
            while not run.finished and run.now_ns < 2_000_000:
                run.run_until(run.now_ns + 10_000)
            assert run.finished
            run.run_until(run.now_ns + 5_000)
            assert held(run, 1) == 0
            assert look(run).total("rx_credit_violations") == 0


updates = st.one_of(
    st.integers(1, 6).map("every: {}".format),
    st.integers(1, 100).map("probability: {}%".format),
)


@given(flows, lanes, st.integers(5, 32), updates, st.sampled_from(["lost", "damaged"]))
@LIMIT
def test_lost_and_damaged_updates_cost_time_and_nothing_else(
    flows: list[tuple[int, int, int, int]], vls: int, buffer_kib: int, which: str, effect: str
) -> None:
    """Even all of them, both ways, for a while: a limit is absolute, so the next one heals."""
    fault = f"{{for: 60us, flow-control: {{cable: 's1:h1', {which}, effect: {effect}}}}}"
    with started(spec_of(incast(flows), *ib(vls, buffer_kib), f"faults=[{fault}]")) as run:
        while not run.finished and run.now_ns < 1_000_000:
            run.run_until(run.now_ns + 3_000)
            assert held(run, vls) <= buffer_kib * 1024
        run.run_until(run.now_ns + 30_000)
        (hit,) = run.observe().faults
        assert run.finished
        outcome = look(run)
    assert dropped(outcome) == 0
    assert hit.packets_dropped == 0
    assert outcome.total("rx_flow_control_errors") == (hit.hits if effect == "damaged" else 0)


@given(st.integers(5, 64), st.integers(1, 7))
@LIMIT
def test_a_full_lane_delays_no_other_but_at_the_arbiter(buffer_kib: int, sl: int) -> None:
    """Ranked above it, a message takes no longer than alone, but for one packet a hop."""
    alone = incast([(3, sl, 100_000, 10)])
    beside = incast([(3, sl, 100_000, 10), (2, 0, 2_000_000, 0)])
    ends = []
    for text in (alone, beside):
        weights = f"subnet.vl_arbitration={{high: {{{sl}: 255}}, low: {{0: 64}}, high_limit: 255}}"
        with started(spec_of(text, *ib(8, buffer_kib), weights)) as run:
            ends.append(finish(run).flows["f0"].end_ns)
    one_packet_each_hop_ns = 3 * 4138 * 8 // 100
    assert ends[0] is not None
    assert ends[1] is not None
    assert ends[1] - ends[0] <= one_packet_each_hop_ns
