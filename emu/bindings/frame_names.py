"""Names the packet in a frame, and the flow that it belongs to, from its first bytes alone."""

from __future__ import annotations

from contextlib import suppress

from emu.bindings.source_ports import queue_pair_numbers
from emu.fabric_kind import Framing
from emu.spec.scenario import Spec
from emu.subnet.subnet import Subnet
from emu.wire.capture import LinkType
from emu.wire.locate import (
    CutShort,
    TransportPacket,
    find_native_transport,
    find_transport,
    network_packet,
)
from emu.wire.opcodes import Opcode
from topologies.graph import Topology

_QPN, _PSN, _BTH_BYTES = slice(5, 8), slice(9, 12), 12
"""Bytes of the BTH (IBTA vol 1, 9.2)."""


def name_frame(head: bytes, spec: Spec, topology: Topology, subnet: Subnet | None) -> str:
    """For example `RC_RDMA_WRITE_MIDDLE of flow in.h2-h1, PSN 17`. `head`: the frame from its first
    byte, up to the BTH at least."""
    transport = _transport(head, spec.fabric_kind.framing)
    if transport is None:
        return "a frame of flow control"
    bth = head[transport.bth : transport.bth + _BTH_BYTES]
    if len(bth) < _BTH_BYTES:
        return "a packet"
    host = _hosts_by_address(topology, subnet).get(transport.dst, "")
    qpn, psn = (int.from_bytes(bth[field], "big") for field in (_QPN, _PSN))
    flows = _flows_of(spec, host, qpn)
    of = f"of flow {', '.join(flows)}" if flows else f"to queue pair {qpn:#x} of {host or '?'}"
    return f"{_opcode(bth[0])} {of}, PSN {psn}"


def _transport(head: bytes, framing: Framing) -> TransportPacket | None:
    """None: the frame has no transport; it is one of flow control."""
    with suppress(CutShort):
        found = (
            find_transport(head, network_packet(LinkType.ETHERNET, head))
            if framing is Framing.ETHERNET
            else find_native_transport(head)
        )
        return found if isinstance(found, TransportPacket) else None
    return None


def _hosts_by_address(topology: Topology, subnet: Subnet | None) -> dict[bytes, str]:
    """Hosts by their IP addresses; on InfiniBand by their LIDs."""
    if subnet is None:
        return {host.ip.packed: host.name for host in topology.hosts}
    return {
        (subnet.lids[host.name] + offset).to_bytes(2, "big"): host.name
        for host in topology.hosts
        for offset in range(1 << subnet.lmc)
    }


def _flows_of(spec: Spec, host: str, qpn: int) -> list[str]:
    """The flows whose connection has this queue pair at the host."""
    flows = spec.fabric_flows()
    numbers = queue_pair_numbers(flows)
    return [flow.name for flow in flows if numbers[flow.connection].get(host) == qpn]


def _opcode(value: int) -> str:
    with suppress(ValueError):
        return Opcode(value).name
    return f"opcode {value:#04x}"
