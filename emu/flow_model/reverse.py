"""What flows send in the other direction: acknowledgements, and the requests of READs.

A reliable connection acknowledges the last packet of a message and every `ack_every`-th of its
packets. So a flow has a fixed number of bytes there for each byte of its data, in which all packets
count with their headers:

                     acknowledgements * bytes of one
    reverse share = ---------------------------------
                      bytes of data on the cable

It is 0.1 % for long messages on Ethernet, 2 % where each packet is acknowledged, and more for short
ones. The messages of a flow count together. CNPs are left out: they follow from marks, of which the
model knows nothing.
"""

from __future__ import annotations

import numpy as np

from emu.flow_model.routes import Column, Shares
from emu.measure.bound import INFINIBAND, overhead_of
from emu.spec.host import Nic
from emu.spec.scenario import Spec
from emu.spec.traffic.entry import transport_of
from topologies.graph import Topology
from traffic.graph import OperationGraph, Verb

_ATOMIC_BYTES = 8


def reverse_shares(
    spec: Spec, topology: Topology, graph: OperationGraph, numbers: Column, *, inside: bool
) -> Shares:
    """For some flows of a workload: the bytes that cross cables in the other direction, for each
    byte of their data. `inside`: their messages stay within servers."""
    if not len(numbers):
        return np.zeros(0)
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
    return each * np.add.reduceat(acks, starts) / np.add.reduceat(wire, starts)


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
