"""The kernel's RED as a marker: the arguments of `tc`, their distance from the curve,
and RED's marks. Most tests need no kernel with RED, because `tc` checks its arguments
before it asks the kernel."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import get_args

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from emu.errors import HostError
from emu.lab import netns
from emu.lab.command import environment, run
from emu.lab.marker.marking import plan_red
from emu.lab.marker.red import WLOG, Red
from emu.lab.namespace import unshare_command
from emu.lab.probe import PROBES, require
from emu.measure.records import MarkedBy
from emu.report.store import load_recording
from emu.spec.switch import Ecn
from tests.lab.marker.red_model import RedQueue
from tests.support.lab_fabrics import clos_of
from tests.support.needs import need
from tests.support.packet_socket import packet_socket
from tests.support.user import User

ECT0, CE = 2, 3
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33  # asm-generic/socket.h
_ROOM_BYTES = 1 << 22
"""Socket buffer size. Packets in RED's queue count against the sender's socket buffer."""
CURVES = [
    (100_000, 400_000, 0.2),
    (5_000, 200_000, 0.01),
    (1_048_576, 2_097_152, 0.05),
    (150_000, 1_500_000, 1.0),
    (300_000, 300_000, 1.0),
    (999_999, 3_000_000, 0.07),
    (100, 3_000, 0.3),
    (0, 50_000, 0.5),
]


def nearest(kmin: int, kmax: int, pmax: float, interface: str = "lo") -> Red:
    return Red.nearest(
        interface,
        kmin_bytes=kmin,
        kmax_bytes=kmax,
        pmax=pmax,
        rate_bps=10**8,
        limit_bytes=4_000_000,
    )


def said_by_tc(line: str) -> str:
    """The errors of `tc` for a line about the loopback interface of a scratch namespace."""
    scratch = unshare_command(root=False)
    done = subprocess.run(
        [*scratch, "tc", *line.split()], capture_output=True, text=True, env=environment()
    )
    return done.stderr


@pytest.mark.parametrize("curve", CURVES)
def test_tc_accepts_the_arguments(
    curve: tuple[int, int, float],
) -> None:
    """`tc` computes W and the slope of the curve before it asks the kernel, which may lack RED."""
    said = said_by_tc(nearest(*curve).queue("root"))
    assert said in ("", "Error: Specified qdisc kind is unknown.\n")


def test_burst_is_the_smallest_that_tc_accepts() -> None:
    """The average follows the queue fastest with the smallest burst."""
    line = nearest(100_000, 400_000, 0.2).queue("root")
    assert "burst 22 is too small" in said_by_tc(line.replace("burst 23", "burst 22"))


@pytest.mark.parametrize("curve", CURVES)
def test_the_average_is_as_fast_as_tc_allows(curve: tuple[int, int, float]) -> None:
    """`tc` takes the smallest WLOG with burst + 1 - min / avpkt <= (1 - (1 - W)^burst) / W."""
    red = nearest(*curve)
    excess = red.burst + 1 - red.min_bytes / red.avpkt_bytes
    w = 2.0**-WLOG
    assert 1 <= excess <= (1 - (1 - w) ** red.burst) / w
    assert red.min_bytes == pytest.approx(curve[0], abs=max(1, red.burst))
    assert red.max_bytes == curve[1]


@pytest.mark.parametrize("pmax", [0.01, 0.2, 0.5])
@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_red_marks_close_to_the_curve(pmax: float, share: float) -> None:
    """RED marks pmax at the top of the curve, and slightly more than the line below."""
    red = nearest(100_000, 400_000, pmax)
    depth = red.min_bytes + int(share * (red.max_bytes - red.min_bytes)) - 1
    queue = RedQueue(red.min_bytes, red.max_bytes, red.probability, 2.0**-WLOG, Random(1))
    marked = sum(queue.marks(depth) for _ in range(200_000)) / 200_000
    p = red.probability * share
    assert marked == pytest.approx(2 * p / (1 + p), rel=0.05)
    assert pmax * share * 0.95 < marked < pmax * share * (1 + pmax)


def test_the_average_lags_by_two_packets() -> None:
    """In a queue that grows by one packet each time, marks begin at most two packets above min."""
    red = nearest(100_000, 100_001, 1.0)
    queue = RedQueue(red.min_bytes, red.max_bytes, 1.0, 2.0**-WLOG, Random(1))
    first = next(n for n in range(100) if queue.marks(n * 4000))
    assert 100_000 / 4000 < first <= 100_000 / 4000 + 2


def test_red_ports_have_their_rate_and_switch_buffer() -> None:
    """Rates are those of the real clock. Ports of switches without marking have no RED."""
    ecn = {"kmin": "100KB", "kmax": "400KB", "pmax": 0.2, "marker": "red"}
    spec = clos_of(1, ecn=ecn, buffer="3MB", nodes={"leaf2": {"ecn": "off"}})
    step = plan_red(spec, spec.topology.build(), 1000)
    assert step is not None
    assert [port.interface for port in step.ports] == [
        *("spine1-eth1", "spine1-eth2", "spine2-eth1", "spine2-eth2"),
        *("leaf1-eth1", "leaf1-eth2", "leaf1-eth3"),
    ]
    assert {(port.rate_bps, port.limit_bytes) for port in step.ports} == {(10**8, 3_000_000)}
    assert plan_red(clos_of(1, ecn={}), spec.topology.build(), 1000) is None


def test_an_error_names_the_missing_red_module() -> None:
    """The error also says how to load the module or how to do without RED."""
    (probe,) = (probe for probe in PROBES if probe.name == "kernel RED")
    if not probe.find_missing():
        pytest.skip("this kernel has it")
    with pytest.raises(HostError, match=r"qdisc sch_(red|tbf).* set switches\.ecn\.marker to"):
        require("kernel RED")


# ---- where the kernel has it ----------------------------------------------------------


@pytest.fixture
def red() -> None:
    """Skip the test unless the kernel has RED."""
    need("kernel RED")


@pytest.fixture
def elsewhere(red: None) -> Iterator[ThreadPoolExecutor]:
    """A thread in a separate network namespace."""
    with ThreadPoolExecutor(1, initializer=netns.unshare) as thread:
        yield thread


def filled(red: Red, packets: int) -> list[bool]:
    """For each of this many 1000-byte packets that fill a stopped queue, whether RED marks it."""
    netns.write_sysctl("net.ipv6.conf.default.disable_ipv6", "1")  # nothing else on the wire
    run(["ip", "link", "add", "name", "near", "type", "veth", "peer", "name", "far"])
    run(["ip", "-batch", "-"], stdin="link set near up\nlink set far up\n")
    run(["tc", "-batch", "-"], stdin="".join(f"{line}\n" for line in red.lines()))
    near, far = packet_socket("near"), packet_socket("far")
    near.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _ROOM_BYTES)
    far.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM_BYTES)
    packet = Ether(dst="02:00:00:00:00:02") / IP(tos=ECT0) / UDP() / Raw(bytes(958))
    for _ in range(packets):
        near.send(bytes(packet))
    shown = json.loads(run(["tc", "-j", "-s", "qdisc", "show", "dev", "near"]))
    (queue,) = [qdisc for qdisc in shown if qdisc["kind"] == "red"]
    assert (queue["options"]["min"], queue["options"]["max"]) == (red.min_bytes, red.max_bytes)
    assert queue["drops"] == 0
    fast = "tbf rate 1gbit burst 4300 limit 4000000"
    run(["tc", *f"qdisc change dev near root handle 1: {fast}".split()])
    near.send(bytes(packet))  # wakes tbf, which would wait for seconds at the slow rate
    return [Ether(far.recv(9000))[IP].tos & 3 == CE for _ in range(packets)]


def test_the_kernel_marks_as_its_model_does(elsewhere: ThreadPoolExecutor) -> None:
    """The queue fills while it is stopped.

    RED marks none up to min, all above max, some in between.
    """
    red = Red.nearest(
        "near", kmin_bytes=42_000, kmax_bytes=400_000, pmax=0.4, rate_bps=1_000, limit_bytes=10**6
    )
    marks = elsewhere.submit(filled, red, 450).result()
    models = []
    for seed in range(200):
        model = RedQueue(red.min_bytes, red.max_bytes, red.probability, 0.5, Random(seed))
        models.append(sum(model.marks(depth * 1000) for depth in range(400)))
    mean = sum(models) / len(models)
    spread = (sum((one - mean) ** 2 for one in models) / len(models)) ** 0.5
    assert not any(marks[:42])
    assert all(marks[410:])
    assert sum(marks[:400]) == pytest.approx(mean, abs=4 * spread)


def test_recordings_know_every_marker_of_specs() -> None:
    asked = set(get_args(Ecn.model_fields["marker"].annotation))
    assert set(get_args(MarkedBy)) == asked - {"auto"} | {"none"}


@pytest.mark.timing
def test_red_holds_the_queues_of_a_lab(red: None, myself: User, tmp_path: Path) -> None:
    """Two senders share a port: there are CE marks, no losses, and the
    shim's own queue stays short."""
    path = tmp_path / "red.emu.yml"
    path.write_text(
        "topology: {kind: dumbbell, hosts_per_side: 2}\n"
        "slowdown: 100000\n"
        "switches: {buffer: 4MB, ecn: {kmin: 40KB, kmax: 200KB, pmax: 40%, marker: red}}\n"
        "traffic: [{name: in, pattern: incast, from: h1-h2, to: h3, op: write, size: 300KB}]\n"
    )
    ended = myself.run_emu("run", path, "--out", tmp_path / "out")
    assert ended.code in (0, 5), ended.err
    recording = load_recording(tmp_path / "out")
    assert recording.marker == "red"
    assert recording.totals["ce_marked"] > 10
    assert recording.totals["retransmitted_packets"] == 0
    assert recording.series.queue_bytes.max() < 40_000
