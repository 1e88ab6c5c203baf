"""A packet with a DSCP and a VLAN priority, and the priority on which a switch receives it."""

from __future__ import annotations

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from emu._core import lib
from emu.runtime.virtual import VirtualFabric
from tests.support.small_fabrics import outcome_so_far, port


def packet(dscp: int, pcp: int | None) -> bytes:
    """A packet from h1 to h2, built by scapy."""
    ether = Ether(dst="02:01:00:01:00:02", src="02:00:0a:00:00:01")
    ip = IP(src="10.0.0.1", dst="10.0.0.2", tos=dscp << 2) / UDP(dport=9) / Raw(bytes(100))
    return bytes(ether / ip if pcp is None else ether / Dot1Q(vlan=1, prio=pcp) / ip)


def received_on(run: VirtualFabric, frame: bytes) -> int:
    """The priority on which switch left counts a frame from h1."""
    before = outcome_so_far(run).ports["left:h1"]["rx_packets"]
    index = run.fabric.index[port(run, "h1:left")]
    assert lib.fabric_inject(run.fabric.core, index, 0, frame, len(frame))
    run.run_until(run.now_ns + 10_000)
    after = outcome_so_far(run).ports["left:h1"]["rx_packets"]
    (grown,) = (priority for priority in range(16) if after[priority] > before[priority])
    return grown
