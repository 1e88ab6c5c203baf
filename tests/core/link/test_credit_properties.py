"""Properties of credits on any fabric, load and faults, which hypothesis draws at random.

It draws the topology, rates, MTU, lanes and their buffers, which may differ from switch to switch,
SL2VL, the VL arbitration tables, and the flows with their service levels.

The suite tries 50 examples of each property; a longer run with 2,000 other examples each time:

    pytest tests/core/link/test_credit_properties.py --hypothesis-profile long
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from emu.runtime.virtual import VirtualFabric
from emu.spec.lanes import credits_of, lanes_of_link
from emu.spec.model import Spec
from emu.spec.rules import contradictions
from emu.spec.subnet import SLS
from emu.spec.switch import CREDIT_BLOCK, OPERATIONAL_VLS
from tests.support.limits import examples
from tests.support.small_fabrics import Outcome, finish, outcome_so_far, tree_paths

LIMIT = examples(50)
UPDATES_NS = 50_000
"""In this time every VL gets more than one credit update."""

Yaml = dict[str, Any]

rates = st.sampled_from(["4x EDR", "4x HDR", "2x HDR", "1x EDR"])
links = st.builds(
    lambda host, fabric, delay: {
        "host": {"rate": host, "delay": f"{delay}ns"},
        "fabric": {"rate": fabric, "delay": f"{delay}ns"},
    },
    rates,
    rates,
    st.sampled_from([25, 500]),
)
topologies = st.one_of(
    st.fixed_dictionaries(
        {
            "kind": st.just("leaf-spine"),
            "spines": st.integers(1, 3),
            "leaves": st.integers(1, 3),
            "hosts_per_leaf": st.integers(2, 4),
            "links": links,
        }
    ),
    st.fixed_dictionaries(
        {"kind": st.just("dumbbell"), "hosts_per_side": st.integers(1, 3), "links": links}
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("ring"),
            "switches": st.integers(3, 5),
            "hosts_per_switch": st.integers(1, 2),
            "links": links,
        }
    ),
    st.fixed_dictionaries({"kind": st.just("fat-tree"), "k": st.sampled_from([2, 4])}),
)


@st.composite
def credits(draw: st.DrawFn, mtu: int) -> Yaml:
    """Lanes of a switch, each with room for at least one packet."""
    vls = draw(st.sampled_from(OPERATIONAL_VLS))
    size = st.integers(mtu + 82, 131_072)
    own = draw(st.dictionaries(st.integers(0, vls - 1), size, max_size=2))
    return {"vls": vls, "buffer": draw(size), "lanes": own}


@st.composite
def subnets(draw: st.DrawFn) -> Yaml:
    """SL2VL, and arbitration tables that serve every lane."""
    tables: dict[str, dict[int, int]] = {"high": {}, "low": {}}
    for vl in draw(st.permutations(range(15))):
        for table in draw(st.sampled_from([("high",), ("low",), ("high", "low")])):
            tables[table][vl] = draw(st.integers(1, 255))
    limit = draw(st.sampled_from([0, 1, 10, 255]))
    sl2vl = draw(st.lists(st.integers(0, 14), min_size=SLS, max_size=SLS))
    return {"sl2vl": sl2vl, "vl_arbitration": {**tables, "high_limit": limit}}


@st.composite
def fabrics(draw: st.DrawFn, size: int = 0) -> Yaml:
    """A spec with up to six writes of the given size, or of any size, often to the same host."""
    topology, mtu = draw(topologies), draw(st.sampled_from([1024, 2048, 4096]))
    spec: Yaml = {"name": "drawn", "fabric": "ib", "topology": topology, "subnet": draw(subnets())}
    graph = Spec.model_validate(spec).topology.build()
    names = st.sampled_from(list(graph.switch)[1:])  # the first switch keeps the common settings
    own = draw(st.dictionaries(names, credits(mtu), max_size=2))
    nodes = {name: {"credits": lanes} for name, lanes in own.items()}
    spec["switches"] = {"credits": draw(credits(mtu)), "nodes": nodes}
    spec["hosts"] = {"nic": {"mtu": mtu, "timeout": 3}}
    hosts = list(graph.host)
    sizes = st.just(size) if size else st.integers(1, 120_000)
    spec["traffic"] = []
    for number in range(draw(st.integers(1, 6))):
        to = draw(st.sampled_from(hosts[:2]))
        source = draw(st.sampled_from([host for host in hosts if host != to]))
        when = {"priority": draw(st.integers(0, 7)), "start": f"{draw(st.integers(0, 20))}us"}
        who = {"name": f"f{number}", "pattern": "pair", "from": source, "to": to}
        spec["traffic"].append({**who, "op": "write", "size": draw(sizes), **when})
    return spec


def cables_of(fabric: Yaml) -> list[str]:
    return list(Spec.model_validate(fabric).topology.build().port_named)


@contextmanager
def running(fabric: Yaml) -> Iterator[VirtualFabric]:
    """The fabric at time 0; its routes form no credit loop."""
    spec = Spec.model_validate(fabric)
    assert list(contradictions(spec)) == []
    topology = spec.topology.build()
    with VirtualFabric(spec, topology, tree_paths(topology)) as run:
        run.start()
        yield run


def keep_to_the_buffers(run: VirtualFabric) -> None:
    """No buffer holds more than its size, and no credit limit exceeds the buffer."""
    spec, topology = run.spec, run.topology
    for name, port in topology.port_named.items():
        lanes = range(lanes_of_link(spec, topology, port))
        if port.node in topology.switch:
            room = credits_of(spec, topology, port)
            assert all(run.fabric.held(port, vl) <= room.buffer_of(vl) for vl in lanes)
        room, credit = credits_of(spec, topology, topology.peer[port]), run.port(name).credit_bytes
        assert all(credit[vl] <= room.buffer_of(vl) for vl in lanes)


def are_at_rest(run: VirtualFabric) -> None:
    """All buffers are empty, and every sender has credit for the whole buffer."""
    spec, topology = run.spec, run.topology
    for name, port in topology.port_named.items():
        room, credit = credits_of(spec, topology, topology.peer[port]), run.port(name).credit_bytes
        for vl in range(lanes_of_link(spec, topology, port)):
            assert port.node not in topology.switch or run.fabric.held(port, vl) == 0
            assert credit[vl] == room.buffer_of(vl) // CREDIT_BLOCK * CREDIT_BLOCK


def dropped(outcome: Outcome) -> int:
    reasons = ("rx_buf_discard", "tx_queue_discard", "no_route", "no_lane", "hoq_discard")
    return sum(outcome.total(reason) for reason in (*reasons, "rx_credit_violations"))


@given(fabrics())
@LIMIT
def test_no_packet_is_dropped_for_want_of_buffer(fabric: Yaml) -> None:
    """Under any load: no buffer holds more than its size, no credit limit exceeds it, and every
    message arrives."""
    with running(fabric) as run:
        while not run.finished and run.now_ns < 5_000_000:
            run.run_until(run.now_ns + 1_500)
            keep_to_the_buffers(run)
        assert run.finished
        outcome = outcome_so_far(run)
    assert dropped(outcome) == 0


@given(fabrics())
@LIMIT
def test_all_blocks_sent_are_received_and_freed(fabric: Yaml) -> None:
    """At the end all buffers are empty, and both ends of each cable have the same count."""
    with running(fabric) as run:
        finish(run)
        run.run_until(run.now_ns + UPDATES_NS)
        outcome = outcome_so_far(run)
        are_at_rest(run)
        for cable in run.topology.cables:
            for near, far in ((cable.a, cable.b), (cable.b, cable.a)):
                sent = outcome.ports[run.topology.port_name[near]]["tx_bytes"]
                assert sent == outcome.ports[run.topology.port_name[far]]["rx_bytes"]


@given(fabrics(size=200_000), st.sampled_from(["loss", "corruption", "duplication"]), st.data())
@LIMIT
def test_packet_faults_leak_no_credit(fabric: Yaml, kind: str, data: st.DataObject) -> None:
    """FCTBS of the next update corrects what the receiver did not count, so the flow goes on. A
    duplicate has credit, too."""
    which = {
        "cable": data.draw(st.sampled_from(cables_of(fabric))),
        "every": data.draw(st.integers(2, 40)),
    }
    with running({**fabric, "faults": [{"for": "100us", kind: which}]}) as run:
        while not run.finished and run.now_ns < 10_000_000:
            run.run_until(run.now_ns + 10_000)
            keep_to_the_buffers(run)
        assert run.finished
        run.run_until(run.now_ns + 1_000_000)  # duplicates take longer to arrive
        are_at_rest(run)
        assert outcome_so_far(run).total("rx_credit_violations") == 0


updates = st.one_of(
    st.builds(lambda every: {"every": every}, st.integers(1, 6)),
    st.builds(lambda percent: {"probability": f"{percent}%"}, st.integers(1, 100)),
)


@given(fabrics(), updates, st.sampled_from(["lost", "damaged"]), st.data())
@LIMIT
def test_lost_credit_updates_only_cost_time(
    fabric: Yaml, which: Yaml, effect: str, data: st.DataObject
) -> None:
    """Even if all updates are lost for a while, both ways: a limit is absolute, so the next update
    restores it."""
    cable = data.draw(st.sampled_from(cables_of(fabric)))
    fault = {"for": "60us", "flow-control": {"cable": cable, "effect": effect, **which}}
    with running({**fabric, "faults": [fault]}) as run:
        while not run.finished and run.now_ns < 5_000_000:
            run.run_until(run.now_ns + 3_000)
            keep_to_the_buffers(run)
        run.run_until(max(run.now_ns, 60_000) + UPDATES_NS)
        (hit,) = run.observe().faults
        assert run.finished
        are_at_rest(run)
        outcome = outcome_so_far(run)
    assert dropped(outcome) == 0
    assert hit.packets_dropped == 0
    assert outcome.total("rx_flow_control_errors") == (hit.hits if effect == "damaged" else 0)


@given(
    topologies.map(lambda drawn: {key: drawn[key] for key in drawn.keys() - {"links"}}),
    st.integers(1, 7),
    st.integers(1, 7),
    st.integers(32, 128),
    st.data(),
)
@LIMIT
def test_full_lane_delays_others_only_at_the_arbiter(
    topology: Yaml, sl: int, vl: int, buffer_kib: int, data: st.DataObject
) -> None:
    """A message of higher priority takes as long as on an idle fabric, plus one packet in
    transmission per port and per port of its ACK's path. Its credit lasts for a round trip, so it
    never waits for its own."""
    lanes = [0] * SLS
    lanes[sl] = vl
    fabric: Yaml = {
        "name": "drawn",
        "fabric": "ib",
        "topology": topology,
        "switches": {"credits": {"vls": 8, "buffer": f"{buffer_kib}KiB"}},
        "subnet": {
            "sl2vl": lanes,
            "vl_arbitration": {"high": {vl: 255}, "low": {0: 64}, "high_limit": 255},
        },
    }
    hosts = list(Spec.model_validate(fabric).topology.build().host)
    source, to = data.draw(st.permutations(hosts))[:2]
    message: Yaml = {"name": "message", "pattern": "pair", "from": source, "to": to, "op": "write"}
    message |= {"size": 100_000, "priority": sl, "start": "10us"}
    crowd: Yaml = {"pattern": "incast", "from": [host for host in hosts if host != to], "to": to}
    crowd |= {"name": "crowd", "op": "write", "size": "500KB", "priority": 0}
    ends = []
    for traffic in ([message], [message, crowd]):
        with running({**fabric, "traffic": traffic}) as run:
            ports = tree_paths(run.topology).path(run.topology, source, to)
            ends.append(finish(run).flows["message"].end_ns)
    one_packet_each_port_ns = 2 * len(ports) * 4138 * 8 // 100
    assert ends[0] is not None
    assert ends[1] is not None
    assert ends[1] - ends[0] <= one_packet_each_port_ns
