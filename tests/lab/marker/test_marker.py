"""The eBPF marker on a veth in a separate network namespace.

The tests must be allowed to load eBPF.
"""

from __future__ import annotations

import mmap
import shutil
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from emu._build import marker as build
from emu._core import lib
from emu.lab import netns
from emu.lab.command import run
from emu.lab.marker.marker import PORTS, PRIORITIES, MarkedPort, Marker, Wred, compile_marker
from emu.lab.netlink import carry_out
from tests.support.needs import need
from tests.support.packet_socket import packet_socket

ROCE_DSCP = 26
ECT0, ECT1, CE = 2, 1, 3
INDEX = 5
PRIORITY = 3
QUEUE_OF = (0, 1, 2, 3, 4, 5, 6, 1)
"""Priority 7 shares priority 1's queue."""
KMIN, KMAX = 1_000, 3_000
PMAX_2_32 = 2**31
SEED = 0x12345678


class Wire:
    """A veth pair whose sending end has the marker."""

    def __init__(self, program: Path) -> None:
        """Create the pair. The calling thread must be in a fresh network namespace."""
        netns.write_sysctl("net.ipv6.conf.default.disable_ipv6", "1")  # nothing else on the wire
        run(["ip", "link", "add", "name", "near", "type", "veth", "peer", "name", "far"])
        run(["ip", "-batch", "-"], stdin="link set near mtu 4200 up\nlink set far mtu 4200 up\n")
        curve = Wred(KMIN, KMAX, PMAX_2_32, SEED)
        port = MarkedPort("near", INDEX, (curve,) * PRIORITIES, QUEUE_OF)
        self.marker = Marker(program, [port])
        carry_out(self.marker.attach_steps("here"), {"here": threading.get_native_id()})
        self._depths = mmap.mmap(self.marker.depths, PORTS * PRIORITIES * 4)
        self._near, self._far = packet_socket("near"), packet_socket("far")

    def set_depth(self, depth_bytes: int, queue: int = PRIORITY) -> None:
        """Set the depth of a queue on the shared map, as the shim does."""
        struct.pack_into("=I", self._depths, (INDEX * PRIORITIES + queue) * 4, depth_bytes)

    def send(self, packet: Packet) -> Packet:
        """The packet as received at the far end."""
        self._near.send(bytes(packet))
        return Ether(self._far.recv(9000))

    def marks(self, packet: Packet) -> bool:
        """Whether the packet arrives with CE."""
        return bool(self.send(packet)[IP].tos & 3 == CE)


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A wire in the namespace of a thread that lives as long as the tests of this module."""
    need("eBPF marker")
    program = tmp_path_factory.mktemp("marker") / "mark.bpf.o"
    compile_marker(program)
    with ThreadPoolExecutor(1, initializer=netns.unshare) as elsewhere:
        yield elsewhere.submit(Wire, program).result()


def _roce(ecn: int = ECT0, priority: int = PRIORITY, size: int = 1000) -> Packet:
    return _ether(priority) / _ip(ecn) / UDP(sport=0xC001, dport=4791) / Raw(bytes(size))


def _ether(priority: int = PRIORITY) -> Packet:
    """An Ethernet header with the transit tag of a packet received on port 1."""
    return Ether(src=f"06:{priority:x}0:01:00:00:01", dst="02:01:00:01:00:01")


def _ip(ecn: int) -> Packet:
    return IP(src="10.0.0.1", dst="10.0.0.2", tos=ROCE_DSCP << 2 | ecn)


def test_a_deep_queue_marks_and_updates_the_checksum(wire: Wire) -> None:
    """Only TOS and checksum differ, and scapy computes the same checksum."""
    wire.set_depth(KMAX)
    for size in (0, 1000, 4096):
        sent = _roce(size=size)
        expected = sent.copy()
        expected[IP].tos |= CE
        assert bytes(wire.send(sent)) == bytes(expected)


def test_a_shallow_queue_marks_nothing(wire: Wire) -> None:
    """A queue at kmin marks nothing, and the packet stays unchanged."""
    wire.set_depth(KMIN)
    assert bytes(wire.send(_roce())) == bytes(_roce())


def test_both_ect_codepoints_are_marked_and_counted(wire: Wire) -> None:
    """RFC 3168 treats ECT(0) and ECT(1) alike. A packet that arrives with CE is not counted."""
    wire.set_depth(KMAX)
    before = wire.marker.marks(INDEX)[PRIORITY]
    assert all(wire.marks(_roce(ecn)) for ecn in (ECT0, ECT1, CE))
    assert wire.marker.marks(INDEX)[PRIORITY] == before + 2


def test_packets_without_ect_are_unchanged(wire: Wire) -> None:
    """CNPs are such packets."""
    wire.set_depth(KMAX, queue=6)
    for packet in (_roce(ecn=0), _roce(ecn=0, priority=6)):
        assert bytes(wire.send(packet)) == bytes(packet)


def test_the_transit_tag_selects_the_queue(wire: Wire) -> None:
    """The depth of another queue has no effect. Two priorities may share a queue."""
    wire.set_depth(0)
    wire.set_depth(KMAX, queue=1)
    assert not wire.marks(_roce())
    assert wire.marks(_roce(priority=1))
    assert wire.marks(_roce(priority=7))


def test_a_tagged_frame_is_marked(wire: Wire) -> None:
    """The marker skips one VLAN tag. The kernel removes the tag at the far end."""
    wire.set_depth(KMAX)
    sent = _ether() / Dot1Q(vlan=7) / _ip(ECT0) / UDP(dport=4791) / Raw(bytes(100))
    assert wire.marks(sent)


@pytest.mark.parametrize(
    "packet",
    [
        _ether() / IPv6(tc=ROCE_DSCP << 2 | ECT0) / UDP() / Raw(bytes(100)),
        Ether(type=0x8808) / Raw(bytes(46)),
        Ether(type=0x0800) / Raw(b"\x45\x6a"),
    ],
    ids=["IPv6", "pause frame", "cut short in the IP header"],
)
def test_frames_without_ipv4_are_unchanged(wire: Wire, packet: Packet) -> None:
    """The frames are IPv6, a pause frame and a truncated IPv4 header."""
    wire.set_depth(KMAX)
    assert bytes(wire.send(packet)) == bytes(packet)


def _with_psn(psn: int) -> Packet:
    bth = b"\x07\x40\xff\xff\x00\x00\x00\x11\x00" + psn.to_bytes(3, "big")
    return _ether() / _ip(ECT0) / UDP(sport=0xC001, dport=4791, chksum=0) / Raw(bth)


def test_halfway_up_the_curve_marks_half_of_pmax(wire: Wire) -> None:
    """pmax is 1/2, so 1/4 of the packets is marked, within five standard deviations."""
    wire.set_depth((KMIN + KMAX) // 2)
    n, p = 2000, 0.25
    allowed = 5 * (n * p * (1 - p)) ** 0.5
    marked = sum(wire.marks(_with_psn(psn)) for psn in range(n))
    assert marked == pytest.approx(n * p, abs=allowed)


def test_ebpf_and_shim_mark_the_same_packets(wire: Wire) -> None:
    """Both derive the random number from the packet."""
    depth = (KMIN + KMAX) // 2
    wire.set_depth(depth)
    for psn in range(500):
        packet = _with_psn(psn)
        draw = lib.core_wred_draw(SEED, bytes(packet[IP])[12:40])
        expected = lib.core_wred_marks(KMIN, KMAX, PMAX_2_32, depth, draw)
        assert wire.marks(packet) == expected


def test_the_packages_build_compiles_the_marker_once(tmp_path: Path) -> None:
    """A run needs no compiler."""
    if shutil.which("clang") is None or not Path("/usr/include/bpf/bpf_helpers.h").exists():
        pytest.skip("needs clang and libbpf-dev")
    made = tmp_path / "package" / "mark.bpf.o"
    assert build.build(made)
    assert made.read_bytes().startswith(b"\x7fELF")
    assert not build.build(made)


def test_the_build_without_a_compiler_skips_the_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package works without the marker."""
    monkeypatch.setenv("PATH", "")
    assert not build.build(tmp_path / "mark.bpf.o")
    assert not list(tmp_path.iterdir())
