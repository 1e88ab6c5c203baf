"""Whole runs of real labs by `emu`: two at once, with other traffic, and with JSON output."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether

from emu.errors import ExitCode
from emu.report.store import load_recording
from emu.report.summary import Comparison, Summary
from emu.spec.model import spec_from_text
from emu.wire.inspect import inspect
from emu.wire.layers import BTH
from emu.wire.opcodes import Opcode
from emu.wire.reader import open_capture
from tests.support.driven_lab import run_driven
from tests.support.iperf3_server import MORE_THAN_IN_FLIGHT
from tests.support.typed_json import misfits
from tests.support.user import User, wait

MTU = 4096
REAL = ("--clock", "real")


def _text(name: str, *, fabric: str = "roce", size: int, more: str = "") -> str:
    """A spec in which two hosts on two leaves send to a third host, beside the first."""
    return (
        f"name: {name}\n"
        f"fabric: {fabric}\n"
        "slowdown: 5000\n"
        "topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}\n"
        "switches: {pfc: {}}\n"
        f"traffic: [{{name: in, pattern: incast, from: h2-h3, to: h1, op: write, size: {size}}}]\n"
        f"{more}"
    )


def _file(folder: Path, text: str) -> Path:
    path = folder / f"{len(list(folder.iterdir()))}.emu.yml"
    path.write_text(text)
    return path


def _document(text: str, kind: type) -> Any:
    """The one JSON document in the text, with the keys and types of `kind`."""
    document = json.loads(text)
    assert misfits(document, kind) == []
    return document


def test_two_labs_run_independently(user: User, tmp_path: Path) -> None:
    """Both have the same names and addresses, and each delivers exactly its own traffic."""
    sizes = {"roce": 400_000, "ib": 300_000}
    running = {
        fabric: user.emu("run", _file(tmp_path, _text(fabric, fabric=fabric, size=size)), "--json")
        for fabric, size in sizes.items()
    }
    for fabric, process in running.items():
        ended = wait(process)
        assert ended.code == 0, ended.err
        summary = _document(ended.out, Summary)
        assert (summary["name"], summary["fabric"], summary["clock"]) == (fabric, fabric, "exact")
        assert [flow["completed"] for flow in summary["flows"]] == [True, True]
        assert _packets_to_h1(summary) == 2 * -(-sizes[fabric] // MTU)


def _packets_to_h1(summary: Any) -> int:
    port = summary["ports"]["leaf1:h1"]
    counter = "PortXmitPkts" if summary["fabric"] == "ib" else "tx_prio3_packets"
    return int(port[counter])


def test_a_run_prints_one_json_document_of_its_schema(myself: User, tmp_path: Path) -> None:
    """Text for people goes to stderr."""
    ended = myself.run_emu("run", _file(tmp_path, _text("one", size=100_000)), "--json")
    assert ended.code == 0, ended.err
    assert _document(ended.out, Summary)["schema"] == "emu.summary/1"
    assert "one: RoCEv2, ovs plane, exact clock" in ended.err


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.timing
def test_a_run_that_is_too_fast_is_inconclusive(myself: User, tmp_path: Path, fabric: str) -> None:
    """No number of the run is shown as a result, and its checks are not judged."""
    text = _text("hasty", fabric=fabric, size=1_000_000, more="verify: [{completed: all}]\n")
    ended = myself.run_emu("run", _file(tmp_path, text), "--set", "slowdown=1", *REAL)
    assert ended.code == ExitCode.INCONCLUSIVE, ended.err
    assert ended.out.startswith("hasty is INCONCLUSIVE")
    assert "try slowdown:" in ended.out
    assert "Totals" not in ended.out
    assert re.search("not judged +every flow completed", ended.out)


@pytest.mark.timing
def test_a_run_records_lateness_and_cpu_time(myself: User, tmp_path: Path) -> None:
    """The verdict rests on the lateness of every frame and the CPU time of each process."""
    out = tmp_path / "out"
    spec = _file(tmp_path, _text("kept", size=100_000))
    ended = myself.run_emu("run", spec, *REAL, "--out", out)
    assert ended.code in (0, 5), ended.err
    recording = load_recording(out)
    fidelity, series = recording.fidelity, recording.series
    assert series.late_up_to_ns[-1] == fidelity.late_max_ns
    bucket_ns = fidelity.late_max_ns / 16 + 1  # width of a bucket, plus rounding
    assert series.late_ns.max() == pytest.approx(fidelity.late_max_ns, abs=bucket_ns)
    packets = sum(host["tx_packets"] for host in recording.hosts.values())
    assert series.late_frames.sum() > 3 * packets  # each packet leaves its NIC and two switches
    assert 0 < fidelity.ovs_kept_p50_ns <= fidelity.ovs_kept_p99_ns <= fidelity.ovs_kept_max_ns
    assert all(recording.cpu_seconds[worker] > 0 for worker in ("shim", "nics", "ovs"))
    machine = recording.machine
    assert machine.kept_ns.max() == pytest.approx(fidelity.ovs_kept_max_ns, rel=1 / 16, abs=1)
    assert len(machine.ledger_time_ns) >= len(series.late_time_ns)
    assert machine.lost_frames.shape == (len(machine.ledger_time_ns), len(machine.losses))
    assert dict(zip(machine.cpu_users, machine.cpu_ns[-1] / 1e9, strict=True)) == pytest.approx(
        recording.cpu_seconds
    )
    assert (np.diff(machine.cpu_time_ns) > 0).all()
    assert machine.cpu_time_ns[0] < 0 < machine.cpu_time_ns[-1]


@pytest.mark.timing
def test_losses_over_time_equal_those_of_the_verdict(myself: User, tmp_path: Path) -> None:
    """The run is too fast for any machine, so Open vSwitch loses packets or buffers are full."""
    out, text = tmp_path / "out", _text("hasty", size=10_000_000)
    spec = _file(tmp_path, text)
    ended = myself.run_emu("run", spec, *REAL, "--set", "slowdown=1", "--out", out)
    assert ended.code == ExitCode.INCONCLUSIVE, ended.err
    recording = load_recording(out)
    said = {
        "ovs": r"Open vSwitch lost (\d+) packets",
        "arriving": r"(\d+) frames found a socket's buffer full",
        "leaving": r"the kernel refused (\d+) frames",
        "place": r"(\d+) frames were overtaken",
    }
    reasons = "\n".join(recording.fidelity.reasons)
    lost = {way: sum(map(int, re.findall(pattern, reasons))) for way, pattern in said.items()}
    machine = recording.machine
    assert dict(zip(machine.losses, machine.lost_frames.sum(axis=0), strict=True)) == lost


def test_dctcp_echoes_marks_and_keeps_the_queue_near_k(myself: User, tmp_path: Path) -> None:
    """With any marker there are no CNPs, and the queue stays near K."""
    text = _text("acks", size=1_500_000, more="hosts: {nic: {cc: dctcp}}\n").replace(
        "pfc: {}", "pfc: {}, ecn: {kmin: 60KB, kmax: 60KB, pmax: 100%}"
    )
    out = tmp_path / "out"
    ended = myself.run_emu("run", _file(tmp_path, text), "--out", out)
    assert ended.code == 0, ended.err
    recording = load_recording(out)
    receiver = recording.hosts["h1"]
    heard = sum(recording.hosts[host]["rp_becn_received"] for host in ("h2", "h3"))
    assert receiver["np_cnp_sent"] == 0
    assert 0 < heard <= receiver["np_becn_sent"] <= receiver["np_ecn_marked_roce_packets"]
    series = recording.series
    busy = (series.time_ns > 50_000) & (series.time_ns < 200_000)
    depths = series.queue_bytes[busy, series.ports.index("leaf1:h1")]
    assert 30_000 < depths.mean() < 90_000


def test_a_comparison_prints_one_json_document(myself: User, tmp_path: Path) -> None:
    """The document has a summary for each fabric."""
    variants = "compare: {a: {}, b: {fabric: ib, switches: {pfc: off}}}\n"
    spec = _file(tmp_path, _text("two", size=100_000, more=variants))
    ended = myself.run_emu("compare", spec, "--json")
    assert ended.code == 0, ended.err
    document = _document(ended.out, Comparison)
    assert {name: run["fabric"] for name, run in document["runs"].items()} == {
        "a": "roce",
        "b": "ib",
    }


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.timing
def test_drives_are_equally_fast_on_real_and_virtual_clock(
    myself: User, tmp_path: Path, fabric: str
) -> None:
    """Each I/O waits for the one before it, and all bytes arrive."""
    drives = "pattern: storage, from: h3, to: h1, block: 16KiB, depth: 1"
    drives += ", count: 30, reads: 50%, media: 20us}"
    spec = _file(tmp_path, re.sub("pattern: .*}", drives, _text("disks", fabric=fabric, size=1)))
    runs = {}
    for clock in ("real", "virtual"):
        ended = myself.run_emu("run", spec, "--json", "--clock", clock)
        assert ended.code in (0, 5), ended.err
        runs[clock] = _document(ended.out, Summary)
    real, virtual = runs.values()
    assert [flow["completed"] for flow in real["flows"]] == [True] * len(real["flows"])
    if real["fidelity"]["verdict"] == "ok":
        for one, other in zip(real["ios"], virtual["ios"], strict=True):
            assert one["iops"] == pytest.approx(other["iops"], rel=0.02)
            assert one["p50_ns"] == pytest.approx(other["p50_ns"], rel=0.02)


@pytest.mark.usefixtures("lab_machine")
@pytest.mark.timing
def test_ping_and_tcp_cross_the_racks_beside_rdma(tmp_path: Path) -> None:
    """The capture shows them between RDMA packets on the same cables."""
    run = run_driven(
        _text("mixed", size=25_000_000, more="capture: [leaf1:h1]\n"),
        tmp_path,
        slowdown=2000,
        commands=[
            ("h1", "ping", "-c", "1", "-W", "5", "10.0.0.3"),
            ("h3", sys.executable, "-m", "tests.support.iperf3_server"),
            ("h1", "iperf3", "--client", "10.0.0.3", *MORE_THAN_IN_FLIGHT, "--json"),
        ],
    )
    ping, _, iperf = run.output
    assert "1 received" in ping
    assert json.loads(iperf)["end"]["sum_received"]["bytes"] > 0
    assert all(flow.completed for flow in run.flows.values())
    kinds = _kinds(run.captures["leaf1:h1"])
    first, last = kinds.index("rdma"), len(kinds) - kinds[::-1].index("rdma")
    assert {"rdma", "icmp", "tcp"} == set(kinds[first:last])


@pytest.mark.usefixtures("lab_machine")
def test_a_vlan_tag_crosses_the_fabric(tmp_path: Path) -> None:
    """The kernel strips tags from received frames.

    The tag is there in the fabric and at the far end.
    """
    text = _text("vlan", size=1_000_000, more="capture: [leaf1:h1, leaf1:h2]\n")
    topology = spec_from_text(text.encode(), source="vlan", settings=()).topology.build()
    port = topology.port_named["h1:leaf1"]
    tagged = (
        Ether(src=port.mac, dst=topology.peer[port].mac)
        / Dot1Q(prio=3, vlan=7)
        / IP(src="10.0.0.1", dst="10.0.0.2", tos=26 << 2)
        / UDP(sport=0xC000)
        / BTH(opcode=Opcode.RC_SEND_ONLY, dest_qp=5)
        / b"hello"
    )
    run = run_driven(text, tmp_path, slowdown=5000, frames=[("h1", bytes(tagged))])
    arrived = tagged.copy()
    arrived[Ether].src, arrived[Ether].dst = (
        topology.port_named[name].mac for name in ("leaf1:h2", "h2:leaf1")
    )
    arrived[IP].ttl -= 1
    for name, frame in {"leaf1:h1": tagged, "leaf1:h2": arrived}.items():
        assert bytes(frame) in _frames(run.captures[name])
        assert inspect(run.captures[name]).icrc.bad == 0


def _frames(path: Path) -> list[bytes]:
    with open_capture(path) as capture:
        return [record.data for record in capture]


def _kinds(path: Path) -> list[str]:
    """The kind of each frame of a capture, from the protocol number in its IPv4 header."""
    names = {1: "icmp", 6: "tcp", 17: "rdma"}
    return [names[data[23]] for data in _frames(path) if data[12:14] == b"\x08\x00"]
