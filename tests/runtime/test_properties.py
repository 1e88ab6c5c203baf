"""Properties of every fabric, with any thresholds, load and obstacles.

    conservation   each packet that NICs sent was received or counted in exactly one drop counter
    lossless       with the computed headroom, a lossless priority drops and repeats nothing, even
                   if its routes form a cyclic buffer dependency and deadlock
    order          on one path, packets of a queue pair arrive in the order they were sent

The obstacles are NICs that pause, slow receivers, and cables that grow longer. test_conservation
covers faults that lose packets.

The suite tries 100 examples; `make properties` tries 2,000 other ones each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from emu._core import lib
from emu.spec.fault.kinds.delay import Delay
from emu.spec.headroom import headroom_of
from emu.spec.model import Spec, load_spec
from emu.spec.rules import contradictions
from emu.units import PS_PER_S
from tests.support.limits import examples
from tests.support.random_specs import (
    DELAYS,
    DROPS,
    KEEPING_ORDER,
    ROUTING,
    Yaml,
    cables_of,
    hosts_of,
    topologies,
    traffic,
)
from tests.support.small_fabrics import ONE_SWITCH, Outcome, outcome_of, outcome_so_far, started

ROOT = Path(__file__).parents[2]
LIMIT_NS = 2_000_000_000
STEP_NS = 100_000
DEADLOCKING = load_spec(
    ROOT / "topologies" / "results" / "pfc-deadlock.emu.yml",
    ["hosts.nic.timeout=14", "traffic.0.priority=3"],
)
"""A run that ends in a deadlock, as few random ones do."""
SETTLED_NS = 1_000_000
"""The time after which no frame is on a cable any more."""


@st.composite
def switch_settings(draw: st.DrawFn) -> Yaml:
    xoff = draw(st.sampled_from([20_000, 8_000, 60_000, 1_000]))
    settings: Yaml = {
        "buffer": draw(st.sampled_from(["16MB", "5MB"])),
        "switching": draw(st.sampled_from(["store-and-forward", "cut-through"])),
        "latency": draw(DELAYS),
        "reserved": draw(st.sampled_from([0, 5000])),
        "queue_limit": draw(st.sampled_from([50_000, 400_000])),
        "pause_response": draw(st.sampled_from(["auto", "0ns", "0ns", "300ns", "2us"])),
        "routing": {"kind": draw(ROUTING)},
    }
    static = {"xoff": xoff, "xon": xoff // draw(st.integers(1, 3))}
    alpha = draw(st.sampled_from(["alpha 1/1000", "alpha 1/100", "alpha 1"]))
    dynamic = {"xoff": alpha, "xon_offset": draw(st.sampled_from([0, 1000]))}
    settings["pfc"] = {
        "priorities": [3],
        "frames": draw(st.sampled_from(["pfc", "pause"])),
    } | draw(st.sampled_from([static, dynamic]))
    if draw(st.booleans()):
        settings["ecn"] = {"at": draw(st.sampled_from(["enqueue", "dequeue"])), "kmin": 20_000}
    return settings


@st.composite
def nics(draw: st.DrawFn) -> Yaml:
    """NICs that accept reordered packets tolerate any delay."""
    nic = {
        "mtu": draw(st.sampled_from([1024, 4096, 256])),
        "cc": draw(st.sampled_from(["none", "dcqcn", "dctcp", "swift"])),
        "timeout": 14,  # 67 ms: longer than any pause
        "pause_response": draw(st.sampled_from(["auto", "0ns", "0ns", "1us"])),
    }
    if draw(st.booleans()):
        nic |= {"recovery": "selective-repeat", "reordering": 65_536}
    return nic


def windows(kind: str, **what: object) -> st.SearchStrategy[Yaml]:
    return st.builds(
        lambda at, lasting: {"at": f"{at}us", "for": f"{lasting}us", kind: what},
        st.integers(0, 60),
        st.integers(20, 200),
    )


@st.composite
def obstacles(draw: st.DrawFn, topology: Yaml) -> list[Yaml]:
    """Up to two of each: hosts that pause, slow hosts, and longer cables."""
    hosts = st.sampled_from(hosts_of(topology))
    cables = st.sampled_from(cables_of(topology))
    faults = [
        draw(windows("pause-storm", host=host, priority=3))
        for host in draw(st.lists(hosts, max_size=2))
    ]
    for host in draw(st.lists(hosts, max_size=2, unique=True)):
        room = draw(st.sampled_from(["5KB", "100KB"]))
        faults.append(draw(windows("slow-receiver", host=host, rate="5Gbit", buffer=room)))
    for cable in draw(st.lists(cables, max_size=2, unique=True)):
        faults.append(
            draw(windows("delay", cable=cable, by=draw(st.sampled_from(["100ns", "3us"]))))
        )
    return faults


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Flows on the lossless priority 3 and the lossy priority 0."""
    topology = draw(topologies())
    drawn: Yaml = {
        "name": "any",
        "seed": draw(st.integers(0, 1000)),
        "topology": topology,
        "switches": draw(switch_settings()),
        "hosts": {"nic": draw(nics())},
        "traffic": draw(traffic(hosts_of(topology), st.sampled_from([3, 3, 3, 0]))),
        "faults": draw(obstacles(topology)),
    }
    drawn["switches"]["nodes"] = headroom_for_delays(Spec.model_validate(drawn))
    spec = Spec.model_validate(drawn)
    assume(not contradictions(spec))
    return spec


def headroom_for_delays(spec: Spec) -> Yaml:
    """Headroom for the bytes that a cable holds while a delay fault makes it longer."""
    topology = spec.topology.build()
    nodes: Yaml = {}
    for delay in (fault.what for fault in spec.faults if isinstance(fault.what, Delay)):
        port = topology.port_named[delay.cable]
        longer = -(-2 * delay.by_ps * topology.cable[port].rate_bps // (8 * PS_PER_S))
        for end in (port, topology.peer[port]):
            if end.node in topology.switch:
                own = {"pfc": {"headroom": headroom_of(spec, end) + longer}}
                neighbour = topology.peer[end].node
                nodes.setdefault(end.node, {"ports": {}})["ports"][neighbour] = own
    return nodes


@dataclass(frozen=True)
class End:
    """The counters at the end of the run, or once it has deadlocked."""

    outcome: Outcome
    deadlocked: bool
    frames_left: int
    refused: int
    """Packets that slow receivers dropped."""

    @property
    def dropped(self) -> int:
        return sum(self.outcome.total(reason) for reason in DROPS) + self.refused


def run_out(spec: Spec) -> End:
    with started(spec) as run:
        core = run.fabric.core
        while not run.finished and run.now_ns < LIMIT_NS and not lib.fabric_deadlocks(core):
            run.run_until(run.now_ns + STEP_NS)
        run.run_until(run.now_ns + SETTLED_NS)
        return End(
            outcome_so_far(run),
            deadlocked=lib.fabric_deadlocks(core) > 0,
            frames_left=int(lib.fabric_frames_in_use(core)),
            refused=sum(fault.packets_dropped for fault in run.observe().faults),
        )


@examples(100)
@example(DEADLOCKING)
@given(specs())
def test_packets_are_conserved_lossless_and_in_order(spec: Spec) -> None:
    """Over random fabrics, thresholds, routes, loads and obstacles."""
    end = run_out(spec)
    assert not end.deadlocked or spec.topology.kind == "ring"
    assert end.deadlocked or spec is not DEADLOCKING
    nothing_is_lost_unseen(end)
    lossless_is_lossless(spec, end)
    if spec.switches.routing.kind in KEEPING_ORDER and end.dropped == 0:
        assert sum(host["out_of_sequence"] for host in end.outcome.hosts.values()) == 0


def nothing_is_lost_unseen(end: End) -> None:
    """All packets have arrived, except those in a deadlock."""
    hosts = end.outcome.hosts.values()
    sent, received = (sum(host[way] for host in hosts) for way in ("tx_packets", "rx_packets"))
    if end.deadlocked:
        assert 0 <= sent - received - end.dropped <= end.frames_left
    else:
        assert end.frames_left == 0
        assert sent == received + end.dropped


def lossless_is_lossless(spec: Spec, end: End) -> None:
    """Flows of the lossless priority all complete without drops; lossy ones can give up."""
    assert all(own["rx_buf_discard"][3] == 0 for own in end.outcome.ports.values())
    assert all(own["tx_queue_discard"][3] == 0 for own in end.outcome.ports.values())
    lossless = [entry for entry in spec.traffic if entry.priority == 3]
    flows = [end.outcome.flows[name] for entry in lossless for name in entry.ends(spec.seed)]
    assert end.deadlocked or all(flow.completed for flow in flows)
    if spec.switches.routing.kind in KEEPING_ORDER or spec.hosts.nic.recovery != "go-back-n":
        assert all(
            flow.retransmitted_packets == 0 for flow in flows
        )  # receivers keep early packets


INCAST = (
    ONE_SWITCH
    + "traffic: [{name: incast, pattern: incast, from: h2-h5, to: h1, op: write, size: 1MB}]\n"
)


@pytest.mark.parametrize(("pfc", "ecn", "cc"), list(product([False, True], repeat=3)))
def test_pfc_ecn_and_dcqcn_work_alone_and_together(pfc: bool, ecn: bool, cc: bool) -> None:
    """Pauses come from PFC, marks from ECN, and rate reductions from DCQCN if there are marks."""
    outcome = outcome_of(
        INCAST,
        "switches.buffer=1MB",
        f"switches.pfc={'{xoff: 90KB}' if pfc else 'off'}",
        f"switches.ecn={'{kmin: 20KB, kmax: 80KB}' if ecn else 'off'}",
        f"hosts.nic.cc={'dcqcn' if cc else 'none'}",
    )
    drops = outcome.total("rx_buf_discard") + outcome.total("tx_queue_discard")
    handled = sum(host["rp_cnp_handled"] for host in outcome.hosts.values())
    assert all(flow.completed for flow in outcome.flows.values())
    assert (outcome.total("tx_pause_frames") > 0) == pfc
    assert (outcome.total("ecn_marked") > 0) == ecn
    assert (handled > 0) == (ecn and cc)
    assert (drops == 0) if pfc else (drops > 0) or (ecn and cc)
