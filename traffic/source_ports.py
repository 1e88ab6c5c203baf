"""The UDP source port of each flow: what ECMP tells flows between the same hosts apart by.

It follows from the two queue pair numbers as Linux has it for connected queue
pairs (rdma_calc_flow_label and rdma_flow_label_to_udp_sport, include/rdma/ib_verbs.h),
and these are given out in the order of the flows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from traffic.graph import Flow

FIRST_QPN = 0x11


def source_ports(flows: Iterable[Flow]) -> dict[str, int]:
    """Flow -> the UDP source port of its data, and of what is sent back, for all flows of the
    fabric in order."""
    used: Counter[str] = Counter()
    ports = {}
    for flow in flows:
        own, remote = (FIRST_QPN + used[host] for host in (flow.src, flow.dst))
        used.update((flow.src, flow.dst))
        ports[flow.name] = source_port(own, remote)
    return ports


def source_port(qpn: int, remote_qpn: int) -> int:
    """0xC000 to 0xFFFF, the same for both ends."""
    v = qpn * remote_qpn
    v ^= v >> 20
    v ^= v >> 40
    label = v & 0xFFFFF
    return (label & 0x3FFF ^ label >> 14) | 0xC000
