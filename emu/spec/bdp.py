"""The number of packets that fill a path: the BDP cap of selective repeat.

    window = round trip of a lone packet * rate of the slowest link / bits of a packet

IRN (Mittal et al., SIGCOMM'18, 3.2) limits packets in flight to this window. It fills the path,
and after a loss the receiver never has to keep more packets than that.
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.scenario import Spec
from topologies.graph import Cable, Topology

_BIT_PS = 10**12
_ACK_BYTES = 86


def bdp_packets(topology: Topology, spec: Spec, src: str, dst: str, mtu_bytes: int) -> int:
    """The number of packets of `mtu_bytes` payload that fill the path from `src` to `dst`."""
    packet_bits = 8 * (mtu_bytes + spec.host(src).nic.overhead_bytes)
    filled_bits = round_trip_ps(topology, spec, src, dst, mtu_bytes) * slowest_bps(
        topology, src, dst
    )
    return -(-filled_bits // (packet_bits * _BIT_PS)) + 1


def round_trip_ps(topology: Topology, spec: Spec, src: str, dst: str, mtu_bytes: int) -> int:
    """The time from a lone packet of `mtu_bytes` payload to its acknowledgement, without queues."""
    packet_bits = 8 * (mtu_bytes + spec.host(src).nic.overhead_bytes)
    ack_bits = 8 * (_ACK_BYTES + spec.host(dst).nic.tag_bytes)
    return sum(
        2 * (cable.delay_ps + latency_ps) + (packet_bits + ack_bits) * _BIT_PS // cable.rate_bps
        for cable, latency_ps in (
            (cable, spec.switch(to).latency_ps if to in topology.switch else 0)
            for cable, to in _hops(topology, src, dst)
        )
    )


def slowest_bps(topology: Topology, src: str, dst: str) -> int:
    """The rate of the slowest cable on the path."""
    return min(cable.rate_bps for cable, _ in _hops(topology, src, dst))


def _hops(topology: Topology, src: str, dst: str) -> Iterator[tuple[Cable, str]]:
    """The cables on a shortest path, each with the node it leads to."""
    port = topology.ports[src][0]
    while True:
        node = topology.peer[port].node
        yield topology.cable[port], node
        if node == dst:
            return
        port = topology.hops(node, dst)[0]
