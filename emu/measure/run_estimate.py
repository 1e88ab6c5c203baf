"""The memory and the wall-clock time that a run on the virtual clock takes, before it begins.

Both are sums of measured costs of the things in a spec:

    ports       of switches and hosts, with their queues, counters, and rows of tables and pages
    flows       with two queue pairs, a path, and a row in the results
    messages    with an operation and a record
    packets     data packets times the links on their paths, once more for an acknowledgement of
                every few; threads share this work
    samples     the table that the core fills, and its copies in the report

The constants are from runs on two cores of a server of 2.x GHz: a permutation and a ring all-reduce
of 1,024 hosts in a fat tree. Those of memory are from permutations of 1,024 to 8,192 hosts, an
all-to-all of 180 hosts and a ring all-reduce of 512. Time depends on the machine, on what else runs
there, and on loss and congestion, which no estimate foresees. `make
bench` compares the estimate of a large run with its time and memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from emu.spec.scenario import Spec
from emu.spec.threads import threads_for
from emu.units import PS_PER_S, format_size
from topologies.graph import Topology
from traffic.graph import NOWHERE, Flow, OperationGraph

_PROCESS_BYTES = 65_000_000
"""Python with all imports."""
_PORT_BYTES = 20_000
"""Half of it is in the core and in the settings, half in the report."""
_ROUTE_BYTES = 2
"""For each switch and host."""
_FLOW_BYTES = 6_000
MESSAGE_BYTES = 850
"""Of each message, without its payload."""
_COPIES_OF_SAMPLES = 3
"""In the core, in the recording, and of parts of it in the report."""

_PROCESS_SECONDS = 0.8
_PORT_SECONDS = 180e-6
"""Read, built and reported."""
_FLOW_SECONDS = 100e-6
_MESSAGE_SECONDS = 2e-6
_HOP_SECONDS = 0.2e-6
"""Of a packet on a link, while what it touches fits into the processor's caches."""
_HOP_SECONDS_IN_MEMORY = 0.55e-6
_PORTS_IN_CACHES, _PORTS_IN_MEMORY = 200, 4_000
_CELL_SECONDS = 20e-9
"""Of a sample: taken, transposed, compressed."""

_ACKS = 0.05
"""Acknowledgements within a message and pauses, as a share of data packets. The last packet of each
message has an acknowledgement in any case."""
_PATHS_LOOKED_AT = 500
_LEAST_ROWS, _MOST_ROWS, _CELLS, _GAUGES = 256, 4096, 1 << 22, 5
_SAMPLE_INTERVAL_PS = 500_000
"""As in emu/bindings/fabric.py."""


@dataclass(frozen=True)
class RunEstimate:
    """What a run on the virtual clock takes."""

    memory_bytes: int
    """At its peak."""
    seconds: float
    """From its first line to its last."""
    link_hops: int
    """Packets times links, of all data packets and what is sent for them."""

    def __str__(self) -> str:
        return f"about {format_size(_rounded(self.memory_bytes))} and {_duration(self.seconds)}"


def estimate_of(spec: Spec, threads: int | None = None) -> RunEstimate:
    """The estimate for a valid spec on the virtual clock, without its variants. `threads`: as many
    as it runs on by default."""
    topology, graph = spec.topology.build(), spec.workload()
    ports = 2 * len(topology.cables)
    flows, messages = len(graph.message_flows), len(graph.size_bytes)
    threads = threads or threads_for(len(topology.hosts))
    hops = _link_hops(spec, topology, graph)
    cells = _sample_cells(spec, ports, flows, _duration_ps(spec, topology, graph))
    memory_bytes = (
        _PROCESS_BYTES
        + ports * _PORT_BYTES
        + len(topology.switches) * len(topology.hosts) * _ROUTE_BYTES
        + flows * _FLOW_BYTES
        + messages * MESSAGE_BYTES
        + cells * 8 * _COPIES_OF_SAMPLES
    )
    if spec.payload == "real":
        memory_bytes += _payload_bytes(graph)
    seconds = (
        _PROCESS_SECONDS
        + ports * _PORT_SECONDS
        + flows * _FLOW_SECONDS
        + messages * _MESSAGE_SECONDS
        + hops * _hop_seconds(ports) / threads
        + cells * _CELL_SECONDS
    )
    return RunEstimate(memory_bytes, seconds, hops)


def _payload_bytes(graph: OperationGraph) -> int:
    """Of messages with memory of their own at either end, and of the buffers of jobs."""
    sizes = graph.size_bytes
    received_elsewhere = (graph.dst_offset == NOWHERE) & (graph.reduce_offset == NOWHERE)
    own = int(sizes[graph.src_offset == NOWHERE].sum()) + int(sizes[received_elsewhere].sum())
    return own + sum(job.buffer_bytes * len(job.ranks) for job in graph.jobs)


def _hop_seconds(ports: int) -> float:
    """Between the two costs by the logarithm of the fabric's size."""
    sizes = np.log([_PORTS_IN_CACHES, _PORTS_IN_MEMORY])
    return float(np.interp(np.log(ports), sizes, [_HOP_SECONDS, _HOP_SECONDS_IN_MEMORY]))


def _sample_cells(spec: Spec, ports: int, flows: int, lasts_ps: int) -> int:
    """The cells of the table that are used: a short run does not fill it."""
    columns = 1 + _GAUGES * ports + flows
    rows = max(_LEAST_ROWS, min(_MOST_ROWS, _CELLS // columns))
    if spec.sample_interval_ps is not None:
        rows = max(_LEAST_ROWS, 4 * _CELLS // columns)
    interval_ps = spec.sample_interval_ps or _SAMPLE_INTERVAL_PS
    return columns * min(rows, 2 + lasts_ps // interval_ps)


def _duration_ps(spec: Spec, topology: Topology, graph: OperationGraph) -> int:
    """How long the busiest host needs for its bytes, after the last planned start."""
    through: Counter[str] = Counter()
    for flow in graph.message_flows:
        size = graph.bytes_of(flow)
        through[flow.bytes_from] += size
        through[flow.bytes_to] += size
    busy_ps = max(
        (
            8 * PS_PER_S * size // topology.cable[topology.ports[host][0]].rate_bps
            for host, size in through.items()
        ),
        default=0,
    )
    starts_ps = 1000 * int(graph.not_before_ns.max(initial=0))
    return min(spec.time_limit_ps, starts_ps + busy_ps)


def _link_hops(spec: Spec, topology: Topology, graph: OperationGraph) -> int:
    """The paths of some flows stand for all: a search for each of a million would take minutes."""
    flows = [flow for flow in spec.fabric_flows() if len(flow.operations)]
    if not flows:
        return 0
    some = flows[:: -(-len(flows) // _PATHS_LOOKED_AT)]
    links = sum(len(topology.stages(flow.bytes_from, flow.bytes_to)) for flow in some) / len(some)
    packets = sum(_packets(spec, graph, flow) for flow in flows)
    messages = sum(len(flow.operations) for flow in flows)
    return int((packets * (1 + _ACKS) + messages) * links)


def _packets(spec: Spec, graph: OperationGraph, flow: Flow) -> int:
    mtu = min(spec.host(host).nic.mtu for host in (flow.src, flow.dst))
    sizes = graph.size_bytes[flow.operations.start : flow.operations.stop]
    return int(np.maximum(1, -(-sizes // mtu)).sum())


def _rounded(count: int) -> int:
    """To two digits: an estimate has no more."""
    unit = int(10 ** max(0, len(str(count)) - 2))
    return round(count / unit) * unit


def _duration(seconds: float) -> str:
    for unit_seconds, name in ((3600, "h"), (60, "min")):
        if seconds >= 2 * unit_seconds:
            return f"{seconds / unit_seconds:.0f} {name}"
    return f"{max(1, seconds):.0f} s"
