"""What flows send in the other direction: acknowledgements, and the requests of READs.

A reliable connection acknowledges the last packet of a message and every `ack_every`-th of its
packets. So a flow has a fixed number of bytes there for each byte of its data, in which all packets
count with their headers:

                     acknowledgements * bytes of one
    reverse share = ---------------------------------
                      bytes of data on the cable

That is 0.1 % for long messages on Ethernet, 2 % where each packet is acknowledged, and more for
short ones. The messages of a flow count together.

On InfiniBand each packet that leaves a buffer is followed by a flow-control packet of 6 bytes to
where it came from (emu/core/link/flow_control_credits.c): 0.15 % of the data, on the other
direction of each cable of its path. CNPs are left out: they follow from marks, of which the model
knows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emu.flow_model.routes import Column, Shares
from emu.measure.bound import INFINIBAND, overhead_of
from emu.spec.host import Nic
from emu.spec.scenario import Spec
from emu.spec.traffic.entry import transport_of
from topologies.graph import Topology
from traffic.graph import OperationGraph
from traffic.verb import Verb

_ATOMIC_BYTES = 8
_FLOW_CONTROL_BYTES = 6
"""Op, FCTBS, VL, FCCL and LPCRC (emu/core/link/credit.h)."""


@dataclass(frozen=True)
class ReverseShares:
    """Of some flows: the bytes in the other direction, for each byte of data."""

    answers: Shares
    """Acknowledgements and requests, on the way from the receiver to the sender."""
    credits: Shares
    """Flow-control packets, on the other direction of each cable."""


def reverse_shares(
    spec: Spec, topology: Topology, graph: OperationGraph, numbers: Column, *, inside: bool
) -> ReverseShares:
    """`numbers`: of the flows. `inside`: their messages stay within servers."""
    if not len(numbers):
        return ReverseShares(np.zeros(0), np.zeros(0))
    overhead = INFINIBAND if inside else overhead_of(spec, topology)
    columns = graph.columns
    fetches = columns.where(lambda verb: verb.fetches)[numbers]
    atomic = columns.where(lambda verb: verb.is_atomic)[numbers]
    addressed = columns.where(lambda verb: verb in (Verb.WRITE, Verb.WRITE_IMM))[numbers]
    unreliable = {entry.name for entry in spec.traffic if transport_of(entry) != "rc"}
    reliable = columns.of_traffic(lambda name: name not in unreliable)[numbers]
    nics = {host: Nic() if inside else spec.host(host).nic for host in columns.hosts}
    src, dst = columns.src[numbers], columns.dst[numbers]
    mtu = np.minimum(
        *(columns.of_hosts(lambda host: nics[host].mtu, ends, np.int64) for ends in (src, dst))
    )
    ack_every = columns.of_hosts(lambda host: _acknowledges_every(nics[host]), src, np.int64)

    own, of, starts = _operations(graph, numbers)
    size = np.where(atomic[of], _ATOMIC_BYTES, graph.size_bytes[own])
    packets = np.maximum(1, -(-size // mtu[of]))
    acks = np.where(fetches[of], 1, -(-packets // ack_every[of]))
    wire = size + -size % 4 + packets * overhead.each + addressed[of] * overhead.reth
    each = np.where(fetches, overhead.request, np.where(reliable, overhead.ack, 0))
    data = np.add.reduceat(wire, starts)
    has_credits = not inside and spec.fabric_kind.uses_credits
    return ReverseShares(
        answers=each * np.add.reduceat(acks, starts) / data,
        credits=has_credits * _FLOW_CONTROL_BYTES * np.add.reduceat(packets, starts) / data,
    )


def _operations(graph: OperationGraph, numbers: Column) -> tuple[Column, Column, Column]:
    """The operations of some flows, the place of the flow of each, and where each flow's begin."""
    first, count = graph.columns.first_operation[numbers], graph.columns.operations[numbers]
    starts = np.cumsum(count) - count
    own = np.repeat(first - starts, count) + np.arange(count.sum())
    return own, np.repeat(np.arange(len(numbers)), count), starts


def _acknowledges_every(nic: Nic) -> int:
    """The packets for each acknowledgement that a NIC requests, as its queue pairs have it."""
    is_every = nic.has_window_of_path or nic.control(nic.cc).needs_every_ack
    return 1 if is_every else nic.ack_every
