"""The mapping of packets to priorities and queues, and how queues share a port."""

from __future__ import annotations

from itertools import permutations

import pytest

from emu._core import lib
from emu.spec.model import Classes
from emu.spec.presets import PRESETS
from tests.support.classified_packet import packet, received_on
from tests.support.small_fabrics import (
    ONE_SWITCH,
    PAIR,
    finish,
    outcome_of,
    outcome_so_far,
    port,
    spec_of,
    started,
)

TWO_CLASSES = (
    ONE_SWITCH
    + """
traffic:
  - {name: heavy, pattern: incast, from: h2-h3, to: h1, op: write, size: 4MB, priority: 3}
  - {name: light, pattern: incast, from: h4-h5, to: h1, op: write, size: 4MB, priority: 0}
switches: {buffer: 4MB, pfc: {priorities: [0, 3]}}
"""
)


@pytest.mark.parametrize(("heavy", "light"), [(1, 1), (3, 1), (50, 50), (14, 15), (100, 7)])
def test_queues_share_a_port_by_their_weights(heavy: int, light: int) -> None:
    """While both are busy: bytes of the receiver's port, within 1 %."""
    spec = spec_of(TWO_CLASSES, f"switches.scheduling.weights={{3: {heavy}, 0: {light}}}")
    with started(spec) as run:
        run.run_until(20_000)
        before = outcome_so_far(run).ports["s1:h1"]["tx_bytes"]
        run.run_until(320_000)
        after = outcome_so_far(run).ports["s1:h1"]["tx_bytes"]
    share = (after[3] - before[3]) / (after[3] - before[3] + after[0] - before[0])
    assert share == pytest.approx(heavy / (heavy + light), rel=0.01)


def test_strict_queue_starves_the_others() -> None:
    """Its two senders could fill the port twice, so the other queue gets nothing while they
    send."""
    spec = spec_of(TWO_CLASSES, "switches.scheduling.strict=[6, 3]")
    with started(spec) as run:
        run.run_until(20_000)
        before = outcome_so_far(run).ports["s1:h1"]["tx_bytes"][0]
        run.run_until(320_000)
        assert outcome_so_far(run).ports["s1:h1"]["tx_bytes"][0] == before
        assert all(flow.completed for flow in finish(run).flows.values())


@pytest.mark.parametrize(
    ("classes", "dscp", "pcp", "priority"),
    [
        ("{}", 26, None, 3),
        ("{}", 26, 5, 3),
        ("{dscp: {26: 4}}", 26, None, 4),
        ("{dscp: {26: 4}, other_dscp: 1}", 48, None, 1),
        ("{trust: pcp}", 26, 5, 5),
        ("{trust: pcp, pcp: {5: 2}}", 26, 5, 2),
        ("{trust: pcp}", 26, None, 0),
        ("{trust: pcp, untagged: 7}", 26, None, 7),
    ],
)
def test_trusted_field_selects_the_priority(
    classes: str, dscp: int, pcp: int | None, priority: int
) -> None:
    """DSCP or PCP, by the map of the port."""
    with started(spec_of(PAIR, "traffic=[]", f"switches.classes={classes}")) as run:
        assert received_on(run, packet(dscp, pcp)) == priority


DUMBBELL = """
topology: {kind: dumbbell, hosts_per_side: 3, links: {fabric: {rate: 400Gbit}}}
traffic: [{name: incast, pattern: incast, from: h1-h3, to: h4, op: write, size: 1MB}]
switches: {buffer: 1MB, pfc: {xoff: 96KB}}
"""


def test_one_hop_with_a_wrong_map_drops_lossless_packets() -> None:
    """The uplink's port maps the lossless DSCP to a lossy priority and drops packets of the
    incast."""
    right = outcome_of(DUMBBELL)
    assert right.total("rx_buf_discard") + right.total("tx_queue_discard") == 0
    wrong = outcome_of(DUMBBELL, "switches.nodes.right.ports.left.classes.dscp={26: 1}")
    assert wrong.ports["right:h4"]["tx_queue_discard"][1] > 0
    assert wrong.ports["right:left"]["rx_packets"][3] == 0
    assert wrong.ports["left:right"]["tx_packets"][3] > 0


def test_priorities_of_one_queue_keep_separate_buffers() -> None:
    """Queue 1 serves both, and each fills its own part of the ingress buffer."""
    with started(spec_of(TWO_CLASSES, "switches.classes.queue={3: 1, 0: 1}")) as run:
        run.run_until(50_000)
        core, index = run.fabric.core, run.fabric.index[port(run, "s1:h1")]
        assert lib.fabric_queued(core, index, 1) > 0
        assert lib.fabric_queued(core, index, 3) == lib.fabric_queued(core, index, 0) == 0
        for host, priority in (("h2", 3), ("h4", 0)):
            held = run.fabric.index[port(run, f"s1:{host}")]
            assert lib.fabric_held(core, held, priority) > 0
        assert all(flow.completed for flow in finish(run).flows.values())


INCAST = (
    ONE_SWITCH
    + """
traffic: [{name: incast, pattern: incast, from: h2-h5, to: h1, op: write, size: 400KB}]
switches: {buffer: 32MB, ecn: {kmin: 20KB, kmax: 80KB}}
hosts: {nic: {cc: dcqcn}}
"""
)


@pytest.mark.parametrize(
    ("preset", "dscp", "data", "cnp"),
    [
        ("nvidia", 26, 3, 6),
        ("sonic", 26, 1, 6),
        ("sonic", 3, 3, 6),
        ("sonic", 4, 4, 6),
        ("cisco", 26, 3, 7),
        ("cisco", 10, 0, 7),
    ],
)
def test_preset_selects_priorities_of_data_and_cnps(
    preset: str, dscp: int, data: int, cnp: int
) -> None:
    """By the vendors' published maps."""
    outcome = outcome_of(INCAST, f"switches.preset={preset}", f"hosts.nic.dscp={dscp}")
    counters = outcome.ports["s1:h2"]
    assert [p for p in range(8) if counters["rx_bytes"][p] > 100_000] == [data]
    assert [p for p in range(8) if counters["tx_packets"][p]] == sorted({data, cnp})


def test_key_beside_a_preset_changes_only_that_key() -> None:
    """A nearer layer can have another preset."""
    spec = spec_of(
        PAIR,
        "switches.preset=nvidia",
        "switches.ecn={kmax: 1MB}",
        "switches.nodes={left: {preset: cisco}}",
    )
    right, left = spec.switch("right").ecn, spec.switch("left").ecn
    assert right is not None
    assert (right.kmin_bytes, right.kmax_bytes, right.pmax) == (150_000, 1_000_000, 1.0)
    assert left is not None
    assert left.kmax_bytes == 3_000_000


VENDORS = [name for name, preset in PRESETS.items() if "classes" in preset.model_fields_set]


@pytest.mark.parametrize("layer", ["roles={side: {preset: %s}}", "nodes={left: {preset: %s}}"])
@pytest.mark.parametrize(("all_have", "left_has"), list(permutations(VENDORS, 2)))
def test_nearer_preset_replaces_a_farther_one(all_have: str, left_has: str, layer: str) -> None:
    """The result equals the nearer preset alone; keys set for all switches remain."""
    both = (
        f"switches.preset={all_have}",
        f"switches.{layer % left_has}",
        "switches.ecn.at=dequeue",
    )
    left = spec_of(PAIR, *both).switch("left")
    alone = spec_of(PAIR, f"switches.preset={left_has}", "switches.ecn.at=dequeue").switch("left")
    assert left.model_copy(update={"preset": left_has}) == alone


def test_preset_none_removes_a_farther_preset() -> None:
    """But keeps the keys beside it."""
    layers = ("preset=sonic", "ecn={kmax: 2MB}", "nodes={left: {preset: none}}")
    left = spec_of(PAIR, *(f"switches.{layer}" for layer in layers)).switch("left")
    assert left == spec_of(PAIR, "switches.ecn={kmax: 2MB}").switch("left")


def test_preset_of_one_section_keeps_the_other_sections() -> None:
    """DCTCP's marking on a SONiC switch."""
    layers = ("switches.preset=sonic", "switches.nodes={left: {preset: dctcp}}")
    left, right = (spec_of(PAIR, *layers).switch(name) for name in ("left", "right"))
    assert (left.classes, left.pfc, left.scheduling) == (right.classes, right.pfc, right.scheduling)
    assert left.ecn == PRESETS["dctcp"].ecn


def test_acks_and_cnps_have_their_own_priorities() -> None:
    """Three DSCPs of one NIC are three priorities at its switch."""
    outcome = outcome_of(INCAST, "hosts.nic.ack_dscp=32", "hosts.nic.cnp_dscp=46")
    sent = outcome.ports["s1:h1"]["rx_packets"]
    cnps = sum(host["np_cnp_sent"] for host in outcome.hosts.values())
    assert (sent[3], sent[4] > 0, sent[5]) == (0, True, cnps)


NVIDIA = (INCAST, "hosts.nic.cc=dcqcn-nvidia")


@pytest.mark.parametrize(
    ("settings", "priority"),
    [((), 6), (("cnp_dscp=46",), 5), (("cnp_res_prio_mode=true", "cnp_dscp=46"), 3)],
    ids=["default", "CNP_DSCP", "CNP_RES_PRIO_MODE"],
)
def test_roce_cc_ecn_selects_the_priority_of_cnps(settings: tuple[str, ...], priority: int) -> None:
    """That of their own DSCP, or of the packets that they answer."""
    keys = (f"hosts.nic.roce_cc_ecn.{setting}" for setting in settings)
    outcome = outcome_of(*NVIDIA, "hosts.nic.ack_dscp=32", *keys)
    cnps = sum(host["np_cnp_sent"] for host in outcome.hosts.values())
    assert cnps > 0
    assert outcome.ports["s1:h1"]["rx_packets"][priority] == cnps


@pytest.mark.parametrize(("mask", "is_on"), [(0b1000, True), (0b11110111, False)])
def test_priority_outside_the_mask_has_no_cc(mask: int, is_on: bool) -> None:
    """ROCE_CC_PRIO_MASK: neither CNPs nor a rate limit; priority 3 is the fourth bit."""
    whole, none = (outcome_of(INCAST, f"hosts.nic.cc={cc}") for cc in ("dcqcn-nvidia", "none"))
    masked = outcome_of(*NVIDIA, f"hosts.nic.roce_cc_ecn.roce_cc_prio_mask={mask}")
    assert masked.ports == (whole if is_on else none).ports
    assert whole.ports != none.ports


def test_dscp_of_a_priority_maps_back_to_it() -> None:
    """With any map; a priority that no DSCP maps to has none."""
    for classes in (Classes(), Classes(dscp={3: 3}, other_dscp=1), Classes(other_dscp=0)):
        for priority in range(8):
            dscp = classes.dscp_of_priority(priority)
            assert (dscp is None) == (priority not in classes.priorities)
            assert dscp is None or classes.priority_of_dscp(dscp) == priority
