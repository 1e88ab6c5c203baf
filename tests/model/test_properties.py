"""What must hold on any fabric, with any thresholds, under any load.

conservation   what the NICs sent was received, or counted in exactly one drop counter
lossless       with headroom as worked out, a lossless priority loses nothing
order          on one path, packets of a queue pair arrive in the order they were sent
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu._core import lib
from emu.spec.model import Spec
from tests.limits import examples
from tests.model.fabrics import ONE_SWITCH, Outcome, finish, outcome_of, started

DROPS = (
    "rx_buf_discard",
    "tx_queue_discard",
    "watchdog_tx_dropped",
    "watchdog_rx_dropped",
    "no_route",
    "ttl_expired",
    "not_ip",
    "corrupt",
    "link_down_discard",
)
STORMS = st.lists(st.tuples(st.integers(2, 60), st.integers(20, 200)), min_size=1, max_size=1)
"""When h1 stops its leaf, and for how long, in us."""
RATES = st.sampled_from(["10Gbit", "25Gbit", "100Gbit", "400Gbit"])
DELAYS = st.sampled_from(["0ns", "50ns", "500ns", "2us"])


@st.composite
def topologies(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    """A fabric without a circle, and how many hosts it has."""
    links = {where: {"rate": draw(RATES), "delay": draw(DELAYS)} for where in ("host", "fabric")}
    each = draw(st.integers(2, 4))
    if draw(st.booleans()):
        return {"kind": "dumbbell", "hosts_per_side": each, "links": links}, 2 * each
    leaves, spines = draw(st.integers(2, 3)), draw(st.integers(1, 2))
    return {
        "kind": "leaf-spine",
        "leaves": leaves,
        "spines": spines,
        "hosts_per_leaf": each,
        "links": links,
    }, leaves * each


@st.composite
def switch_settings(draw: st.DrawFn) -> dict[str, Any]:
    xoff = draw(st.sampled_from([20_000, 8_000, 60_000, 1_000]))
    told: dict[str, Any] = {
        "buffer": "16MB",
        "switching": draw(st.sampled_from(["store-and-forward", "cut-through"])),
        "latency": draw(DELAYS),
        "reserved": draw(st.sampled_from([0, 5000])),
        "queue_limit": draw(st.sampled_from([50_000, 400_000])),
        "pause_response": draw(st.sampled_from(["auto", "0ns", "0ns", "300ns", "2us"])),
    }
    static = {"xoff": xoff, "xon": xoff // draw(st.integers(1, 3))}
    dynamic = {"xoff": draw(st.sampled_from(["alpha 1/1000", "alpha 1/100", "alpha 1"]))}
    told["pfc"] = {
        "priorities": [3],
        "frames": draw(st.sampled_from(["pfc", "pause"])),
    } | draw(st.sampled_from([static, dynamic]))
    if draw(st.booleans()):
        told["ecn"] = {"at": draw(st.sampled_from(["enqueue", "dequeue"])), "kmin": 20_000}
    return told


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Flows on the lossless priority 3 and the lossy 0, most of them to h1, which pauses once."""
    topology, count = draw(topologies())
    hosts = [f"h{n + 1}" for n in range(count)]
    traffic = []
    for number in range(draw(st.integers(3, 8))):
        target = draw(st.sampled_from(["h1", "h1", "h1", *hosts]))
        source = draw(st.sampled_from([host for host in hosts if host != target]))
        entry = {"name": f"t{number}", "pattern": "pair", "from": source, "to": target}
        entry["size"] = draw(st.sampled_from([400_000, 150_000, 60_001, 1]))
        entry["priority"] = draw(st.sampled_from([3, 3, 3, 0]))
        entry["start"] = draw(DELAYS)
        traffic.append(entry)
    return Spec.model_validate(
        {
            "name": "any",
            "seed": draw(st.integers(0, 1000)),
            "topology": topology,
            "switches": draw(switch_settings()),
            "hosts": {
                "nic": {
                    "mtu": draw(st.sampled_from([256, 1024, 4096])),
                    "cc": draw(st.sampled_from(["none", "dcqcn"])),
                    "timeout": 10,
                    "pause_response": draw(st.sampled_from(["auto", "0ns", "0ns", "1us"])),
                }
            },
            "traffic": traffic,
            "faults": [
                {
                    "at": f"{at}us",
                    "for": f"{lasting}us",
                    "pause-storm": {"host": "h1", "priority": 3},
                }
                for at, lasting in draw(STORMS)
            ],
        }
    )


def run_out(spec: Spec) -> tuple[Outcome, int]:
    """What was counted when all was over and nothing was left on a cable; frames left."""
    with started(spec) as run:
        finish(run, within_ns=200_000_000)
        run.run_until(run.now_ns + 1_000_000)
        left = int(lib.fabric_frames_in_use(run.fabric.core))
        return finish(run), left


@examples(100)
@given(specs())
def test_nothing_is_lost_unseen_and_lossless_is_lossless_and_in_order(spec: Spec) -> None:
    """Over random fabrics, thresholds and loads."""
    outcome, left = run_out(spec)
    hosts = outcome.hosts.values()
    sent, received = (sum(host[way] for host in hosts) for way in ("tx_packets", "rx_packets"))
    assert all(flow.completed for flow in outcome.flows.values())
    assert left == 0
    assert sent == received + sum(outcome.total(reason) for reason in DROPS)
    lossless = {entry.name for entry in spec.traffic if entry.priority == 3}
    assert all(own["rx_buf_discard"][3] == 0 for own in outcome.ports.values())
    assert all(own["tx_queue_discard"][3] == 0 for own in outcome.ports.values())
    for name, flow in outcome.flows.items():
        assert flow.retransmitted_packets == 0 or name not in lossless
    if len(lossless) == len(spec.traffic):
        assert sum(host["out_of_sequence"] for host in hosts) == 0


INCAST = (
    ONE_SWITCH
    + "traffic: [{name: incast, pattern: incast, from: h2-h5, to: h1, op: write, size: 1MB}]\n"
)


@pytest.mark.parametrize(("pfc", "ecn", "cc"), list(product([False, True], repeat=3)))
def test_pfc_ecn_and_dcqcn_each_do_their_part_alone_and_together(
    pfc: bool, ecn: bool, cc: bool
) -> None:
    """Pauses come from PFC, marks from ECN, reductions from DCQCN if there are marks."""
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
