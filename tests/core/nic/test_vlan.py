"""VLAN tags of NICs: the bytes on the cable, as tshark reads them and as plain bytes; their cost in
time, in closed form; and the priorities that tags select."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import pytest

from emu.runtime.virtual import VirtualRunner
from emu.spec.bdp import bdp_packets
from emu.wire.inspect import inspect
from emu.wire.reader import open_capture
from tests.support.idle_star import BYTE_NS, message_ns
from tests.support.small_fabrics import (
    INCAST,
    ONE_SWITCH,
    PAIR,
    finish,
    outcome_of,
    spec_of,
    started,
)

TAG = 4
CNP = 0x81
CONGESTED = (
    INCAST,
    "switches={buffer: 32MB, classes: {trust: pcp}, ecn: {kmin: 20KB, kmax: 80KB}}",
    "hosts.nic={cc: dcqcn-nvidia, ack_dscp: 32, vlan: 100}",
)


def captured(folder: Path, text: str, *settings: str) -> Path:
    """The capture of a whole run at port s1:h1, or left:h1."""
    spec = spec_of(text, *settings)
    run = VirtualRunner().run(spec, out=folder)
    assert all(flow.completed for flow in run.flows)
    (path,) = run.captures.values()
    return folder / path


def rows(path: Path, *fields: str) -> list[list[str]]:
    """tshark's fields of every frame."""
    if shutil.which("tshark") is None:
        pytest.skip("needs tshark: apt-get install tshark")
    options = [option for field in fields for option in ("-e", field)]
    output = subprocess.run(
        ["tshark", "-r", str(path), "-T", "fields", *options],
        check=True,
        capture_output=True,
        text=True,
    )
    return [line.split("\t") for line in output.stdout.splitlines()]


def test_tshark_finds_vid_and_pcp_of_data_acks_and_cnps(tmp_path: Path) -> None:
    """Each kind has the priority of its DSCP (26, 32, 48), and every ICRC is valid."""
    path = captured(tmp_path, *CONGESTED, "capture=[s1:h1]")
    fields = ("vlan.id", "vlan.priority", "ip.dsfield.dscp", "infiniband.bth.opcode")
    seen = {
        (int(dscp), int(opcode) == CNP): (vid, pcp)
        for vid, pcp, dscp, opcode in rows(path, *fields)
    }
    assert seen == {(26, False): ("100", "3"), (32, False): ("100", "4"), (48, True): ("100", "6")}
    found = inspect(path)
    assert found.vlan_tagged == found.icrc.ok > 100
    assert (found.icrc.bad, found.vlan_stacked, found.other) == (0, 0, {})


@pytest.mark.parametrize("vid", [0, 4094])
def test_tagged_frame_differs_only_by_its_tag(vid: int, tmp_path: Path) -> None:
    """A flow with tags sends the same frames in the same order, with four bytes more in each."""
    frames = []
    for folder, setting in (("bare", "hosts.nic.mtu=4096"), ("tagged", f"hosts.nic.vlan={vid}")):
        with open_capture(captured(tmp_path / folder, PAIR, "capture=[left:h1]", setting)) as file:
            frames.append([record.data for record in file])
    bare, tagged = frames
    assert [frame[:12] + frame[12 + TAG :] for frame in tagged] == bare
    tci = 3 << 13 | vid
    assert {frame[12 : 12 + TAG] for frame in tagged} == {b"\x81\x00" + tci.to_bytes(2, "big")}


@pytest.mark.parametrize("payload", ["real", "elided"])
@pytest.mark.parametrize("size", [1, 4096, 100_000])
def test_tag_costs_four_bytes_per_packet(size: int, payload: str) -> None:
    """On the first cable for each packet, on the second once more for the first packet."""
    entry = f"{{name: flow, pattern: pair, from: h1, to: h2, op: write, size: {size}B}}"
    settings = (f"traffic=[{entry}]", f"payload={payload}")
    packets = -(-size // 4096)
    for tag, vlan in ((0, ()), (TAG, ("hosts.nic.vlan=0",))):
        flow = outcome_of(ONE_SWITCH, *settings, *vlan).flows["flow"]
        assert flow.end_ns is not None
        expected_ns = message_ns(-(-size // 4) * 4) + tag * (packets + 1) * BYTE_NS
        assert flow.end_ns - flow.start_ns == pytest.approx(expected_ns, abs=1)


@pytest.mark.parametrize("transport", ["uc", "ud"])
def test_uc_and_ud_packets_are_tagged(transport: str, tmp_path: Path) -> None:
    """A message of one packet, which needs no answer."""
    path = captured(
        tmp_path,
        ONE_SWITCH,
        f"traffic=[{{name: flow, pattern: pair, from: h1, to: h2, op: send, size: 1KB, "
        f"transport: {transport}}}]",
        "hosts.nic.vlan=5",
        "capture=[s1:h1]",
    )
    assert rows(path, "vlan.id", "vlan.priority") == [["5", "3"]]


def test_tagged_and_untagged_hosts_interoperate() -> None:
    """In both directions, where switches trust DSCP."""
    for host in ("h1", "h2"):
        outcome = outcome_of(PAIR, f"hosts.nodes.{host}.nic.vlan=3")
        assert outcome.flows["flow"].completed
        assert outcome.ports["left:right"]["tx_packets"][3] > 0


LOSSLESS = (INCAST, "switches={buffer: 1MB, pfc: {xoff: 96KB}, classes: {trust: pcp}}")


def test_trusted_pcp_makes_a_priority_lossless() -> None:
    """Priority 3 is lossless; priority 0, which untagged frames take, is not."""
    tagged = outcome_of(*LOSSLESS, "hosts.nic.vlan=0")
    assert tagged.total("rx_buf_discard") == tagged.total("tx_queue_discard") == 0
    assert tagged.ports["s1:h2"]["tx_pause"][3] > 0
    assert tagged.ports["s1:h2"]["rx_packets"][0] == 0
    bare = outcome_of(*LOSSLESS)
    assert bare.total("tx_queue_discard") > bare.total("tx_pause") == 0
    assert bare.ports["s1:h2"]["rx_packets"][3] == 0


@pytest.mark.parametrize(
    ("settings", "pcp"),
    [
        ((), 6),
        (("cnp_dscp=46",), 5),
        (("cnp_dscp=46", "cnp_802p_prio=7"), 7),
        (("cnp_802p_prio=0",), 0),
        (("cnp_802p_prio=7", "cnp_res_prio_mode=true"), 3),
    ],
    ids=["default", "CNP_DSCP", "CNP_802P_PRIO", "CNP_802P_PRIO 0", "CNP_RES_PRIO_MODE"],
)
def test_cnps_take_the_priority_of_their_tag(settings: tuple[str, ...], pcp: int) -> None:
    """At a switch that trusts PCP; data have priority 3 and acknowledgements 4."""
    keys = [f"hosts.nic.roce_cc_ecn.{setting}" for setting in settings]
    assert spec_of(*CONGESTED, *keys).cnp_priority("h1") == pcp
    outcome = outcome_of(*CONGESTED, *keys)
    cnps = sum(host["np_cnp_sent"] for host in outcome.hosts.values())
    assert cnps > 0
    assert outcome.ports["s1:h1"]["rx_packets"][pcp] == cnps


@pytest.mark.parametrize(
    ("changes", "at_nic", "at_switch"),
    [("switches: {classes: {trust: dscp}}", 7, 6), ("hosts: {nic: {vlan: null}}", 6, 1)],
    ids=["DSCP trusted", "no tags"],
)
def test_variant_can_drop_tags_or_trust_in_pcp(changes: str, at_nic: int, at_switch: int) -> None:
    """CNPs then take the priority of their DSCP, or that of untagged frames. CNP_802P_PRIO has an
    effect only where frames have tags."""
    keys = ("hosts.nic.roce_cc_ecn.cnp_802p_prio=7", "switches.classes.untagged=1")
    variant = spec_of(*CONGESTED, *keys, f"compare={{other: {{{changes}}}}}").variants()["other"]
    with started(variant) as run:
        outcome = finish(run)
    assert outcome.ports["h1:s1"]["tx_packets"][at_nic] == outcome.hosts["h1"]["np_cnp_sent"] > 0
    assert outcome.ports["s1:h1"]["rx_packets"][at_switch] >= outcome.hosts["h1"]["np_cnp_sent"]
    assert variant.cnp_priority("h1") == at_switch


def test_cnp_802p_prio_changes_pcp_and_leaves_dscp(tmp_path: Path) -> None:
    path = captured(
        tmp_path, *CONGESTED, "hosts.nic.roce_cc_ecn.cnp_802p_prio=7", "capture=[s1:h1]"
    )
    fields = ("infiniband.bth.opcode", "vlan.priority", "ip.dsfield.dscp")
    cnps = {tuple(row[1:]) for row in rows(path, *fields) if int(row[0]) == CNP}
    assert cnps == {("7", "48")}


@pytest.mark.parametrize(
    ("settings", "paused"), [((), 4), (("hosts.nic.vlan=9",), 3)], ids=["bare", "tagged"]
)
def test_slow_receiver_pauses_by_the_trusted_field(settings: tuple[str, ...], paused: int) -> None:
    """Here untagged frames have priority 4 whatever their DSCP, so the pause cannot stop the
    sender, which sends them on 3; tagged frames have the priority of their PCP."""
    outcome = outcome_of(
        PAIR,
        "switches={pfc: {priorities: [3, 4], xoff: 96KB}, classes: {trust: pcp, untagged: 4}}",
        "faults=[{slow-receiver: {host: h2, rate: 10Gbit, buffer: 64KB}}]",
        "hosts.nic.timeout=8",
        *settings,
    )
    flow = outcome.flows["flow"]
    assert flow.completed
    pauses = outcome.ports["right:h2"]["rx_pause"]
    assert [priority for priority in range(8) if pauses[priority]] == [paused]
    assert (flow.retransmitted_packets == 0) == (paused == 3)


def test_bdp_window_counts_the_tags() -> None:
    """Selective repeat: the bits of a round trip over those of a packet, each with its tag, plus
    one packet."""
    for tag, vlan in ((0, ()), (TAG, ("hosts.nic.vlan=0",))):
        spec = spec_of(ONE_SWITCH, *vlan)
        packet, ack = 256 + 98 + tag, 86 + tag
        round_trip_bytes = (2 * 2 * 500 + 2 * 600) / BYTE_NS + 2 * (packet + ack)
        held = bdp_packets(spec.topology.build(), spec, "h1", "h2", 256)
        assert held == math.ceil(round_trip_bytes / packet) + 1
