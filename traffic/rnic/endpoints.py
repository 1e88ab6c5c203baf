"""The hosts of a fabric at work: NICs, registered memory, queue pairs, and the workload on them.

Every host has two regions of real memory: a source, filled with random bytes,
and a sink with a place of its own for every message it receives. Every flow has
a pair of queue pairs. The C core runs the whole graph of operations; Python
looks at the memory afterwards and compares every byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emu._core import ffi, lib
from emu.errors import FabricError
from emu.measure.observation import Observation
from emu.measure.progress import Progress
from emu.measure.recording import Counters, FlowRecord
from emu.shim.fabric import Fabric
from emu.spec.host import Nic, priority_of_dscp
from emu.subnet import Subnet
from topologies.graph import Host
from traffic.graph import Flow, Operation, OperationGraph, Verb

SOURCE_VA = 0x1000_0000_0000
SINK_VA = 0x2000_0000_0000
SOURCE_SLACK = 1 << 16
"""Messages start at different places of the source, so that no two carry the same bytes."""
RNR_RETRY_FOR_EVER = 7
MIN_RNR_TIMER = 1
"""Code of the shortest wait, 10 us."""

_NEVER = 2**63 - 1
_VERBS = {Verb.SEND: lib.VERB_SEND, Verb.WRITE: lib.VERB_WRITE}


@dataclass
class _Memory:
    """A host's registered memory, and where each message goes."""

    source: NDArray[np.uint8]
    sink: NDArray[np.uint8]
    source_key: int = 0
    sink_key: int = 0
    source_at: dict[int, int] = field(default_factory=dict)
    sink_at: dict[int, int] = field(default_factory=dict)


class Endpoints:
    """All NICs of a fabric that has its hosts in this process."""

    def __init__(self, fabric: Fabric, workload: OperationGraph, subnet: Subnet | None) -> None:
        self._fabric = fabric
        self._graph = workload
        self._subnet = subnet
        self._random = Random(fabric.spec.seed)
        self._alive: list[Any] = []  # what C keeps pointers to
        self._nics = {host.name: self._add_nic(host) for host in fabric.topology.hosts}
        self._memory = {host.name: self._register(host.name) for host in fabric.topology.hosts}
        fabric.connect()
        self._qps = {flow.name: self._connect(flow) for flow in workload.flows}
        self._workload = self._load()

    def start(self) -> None:
        """Starts what waits for nothing but its time."""
        lib.workload_start(self._workload)

    def close(self) -> None:
        lib.workload_free(self._workload)

    @property
    def flow_bytes(self) -> Any:
        """C pointer to the bytes delivered so far, one count a flow."""
        return lib.workload_delivered(self._workload)

    @property
    def finished_flag(self) -> Any:
        """C pointer to a flag that says whether every operation is over."""
        return lib.workload_finished(self._workload)

    @property
    def finished(self) -> bool:
        """Whether every operation is over."""
        return bool(self.finished_flag[0])

    def progress(self, now_ns: int) -> Progress:
        """How far the workload is at the emulated time `now_ns`."""
        delivered = [self.flow_bytes[i] for i in range(len(self._graph.flows))]
        wanted = [
            sum(self._graph.operations[i].size_bytes for i in flow.operations)
            for flow in self._graph.flows
        ]
        return Progress(
            emulated_ns=now_ns,
            bytes_done=sum(delivered),
            bytes_total=sum(wanted),
            flows_done=sum(done == want for done, want in zip(delivered, wanted, strict=True)),
            flows_total=len(wanted),
        )

    def observe(self, fabric: Observation) -> Observation:
        """What the fabric has seen, and with it what became of flows and NICs."""
        flows = tuple(self._flow_record(flow) for flow in self._graph.flows)
        return replace(fabric, flows=flows, nics=self._counters())

    def _counters(self) -> dict[str, Counters]:
        fields = [name for name, _ in ffi.typeof("struct nic_counters").fields]
        return {
            host: {name: getattr(lib.nic_counters(nic), name) for name in fields}
            for host, nic in self._nics.items()
        }

    # ---- setting up --------------------------------------------------------

    def _address(self, host: str) -> int:
        if self._subnet is not None:
            return self._subnet.lids[host]
        return int(self._fabric.topology.host[host].ip)

    def _add_nic(self, host: Host) -> Any:
        topology = self._fabric.topology
        port = topology.ports[host.name][0]
        gateway = topology.peer[port]
        settings = self._fabric.spec.host(host.name).nic
        config = ffi.new("struct nic_config *")
        config.framing = int(self._fabric.infiniband)
        config.address = self._address(host.name)
        config.mac = bytes.fromhex(port.mac.replace(":", ""))
        config.gateway_mac = bytes.fromhex(gateway.mac.replace(":", ""))
        config.cnp_dscp = settings.cnp_dscp
        config.priority_of_dscp = [priority_of_dscp(dscp) for dscp in range(64)]
        vls = self._fabric.spec.switch(gateway.node).credits.vls
        config.vl_of_sl = [sl % vls for sl in range(16)]
        config.max_qps = sum(host.name in (flow.src, flow.dst) for flow in self._graph.flows)
        config.max_regions = 2
        return self._fabric.add_nic(host, config)

    def _register(self, host: str) -> _Memory:
        sent = [o.size_bytes for o in self._graph.operations if o.src == host]
        received = [o for o in self._graph.operations if o.dst == host]
        source = np.frombuffer(
            self._random.randbytes(max(sent, default=0) + SOURCE_SLACK), np.uint8
        ).copy()
        sink = np.full(sum(o.size_bytes for o in received) + 1, 0, np.uint8)
        memory = _Memory(source, sink)
        memory.source_key = self._add_region(host, SOURCE_VA, source, 0)
        memory.sink_key = self._add_region(
            host, SINK_VA, sink, lib.ACCESS_LOCAL_WRITE | lib.ACCESS_REMOTE_WRITE
        )
        place = 0
        for operation in received:
            memory.sink_at[operation.id] = place
            place += operation.size_bytes
        for operation in self._graph.operations:
            if operation.src == host:
                memory.source_at[operation.id] = operation.id * 64 % SOURCE_SLACK
        return memory

    def _add_region(self, host: str, va: int, array: NDArray[np.uint8], access: int) -> int:
        bytes_ = ffi.from_buffer("uint8_t[]", array, require_writable=True)
        self._alive.append(bytes_)
        key = lib.nic_add_region(self._nics[host], va, len(array), access, bytes_)
        return int(_have(key, "a memory region"))

    def _connect(self, flow: Flow) -> Any:
        """The flow's queue pair at its sender, connected to one at its receiver."""
        sender, receiver = (self._add_qp(host, flow) for host in (flow.src, flow.dst))
        lib.qp_connect_pair(sender, receiver)
        return sender

    def _add_qp(self, host: str, flow: Flow) -> Any:
        settings = self._fabric.spec.host(host).nic
        peer = self._fabric.spec.host(flow.dst if host == flow.src else flow.src).nic
        first = self._graph.operations[flow.operations[0]]
        name = ffi.new("char[]", settings.cc.encode())
        config = ffi.new("struct qp_config *")
        config.psn = self._random.getrandbits(24)
        config.mtu = min(settings.mtu, peer.mtu)
        config.dscp = settings.dscp if first.priority is None else first.priority << 3
        config.sl = settings.sl if first.priority is None else first.priority
        config.ack_every = settings.ack_every
        config.window = settings.window or 0
        config.timeout = settings.timeout
        config.retry_count = settings.retry_count
        config.rnr_retry = RNR_RETRY_FOR_EVER
        config.min_rnr_timer = MIN_RNR_TIMER
        config.cc = name
        _set_dcqcn(config.dcqcn, settings)
        return _have(lib.nic_add_qp(self._nics[host], config), "a queue pair")

    def _load(self) -> Any:
        operations = self._graph.operations
        waiting: list[list[int]] = [[] for _ in operations]
        for operation in operations:
            for earlier in operation.after:
                waiting[earlier].append(operation.id)
        table = ffi.new("struct operation[]", len(operations))
        dependents: list[int] = []
        flow_index = {flow.name: i for i, flow in enumerate(self._graph.flows)}
        for row, operation in zip(table, operations, strict=True):
            self._fill(row, operation, flow_index[operation.flow])
            row.first_dependent = len(dependents)
            row.dependent_count = len(waiting[operation.id])
            dependents += waiting[operation.id]
        self._alive.append(table)
        clock = lib.fabric_clock(self._fabric.core)
        workload = lib.workload_new(
            clock, table, len(table), dependents, len(dependents), len(self._graph.flows)
        )
        return _have(workload, "the workload")

    def _fill(self, row: Any, operation: Operation, flow: int) -> None:
        source, sink = self._memory[operation.src], self._memory[operation.dst]
        row.qp = self._qps[operation.flow]
        row.verb = _VERBS[operation.verb]
        row.flow = flow
        row.local_va = SOURCE_VA + source.source_at[operation.id]
        row.lkey = source.source_key
        row.remote_va = SINK_VA + sink.sink_at[operation.id]
        row.rkey = sink.sink_key
        row.length = operation.size_bytes
        row.not_before_ps = operation.not_before_ns * 1000

    # ---- looking back --------------------------------------------------------

    def _flow_record(self, flow: Flow) -> FlowRecord:
        records = lib.workload_records(self._workload)
        own = [records[i] for i in flow.operations]
        operations = [self._graph.operations[i] for i in flow.operations]
        delivered = max(record.delivered_ps for record in own)
        succeeded = all(record.status == lib.STATUS_SUCCESS for record in own)
        started = min(record.started_ps for record in own)
        return FlowRecord(
            name=flow.name,
            traffic=flow.traffic,
            src=flow.src,
            dst=flow.dst,
            op=flow.verb.value,
            bytes=sum(operation.size_bytes for operation in operations),
            start_ns=operations[0].not_before_ns if started == _NEVER else started // 1000,
            end_ns=None if delivered == _NEVER else delivered // 1000,
            retransmitted_packets=sum(record.retransmitted_packets for record in own),
            completed=succeeded and all(map(self._arrived_intact, operations)),
        )

    def _arrived_intact(self, operation: Operation) -> bool:
        source, sink = self._memory[operation.src], self._memory[operation.dst]
        at, to = source.source_at[operation.id], sink.sink_at[operation.id]
        size = operation.size_bytes
        return np.array_equal(source.source[at : at + size], sink.sink[to : to + size])


def _set_dcqcn(config: Any, nic: Nic) -> None:
    dcqcn = nic.dcqcn
    config.g = dcqcn.g
    config.rai_bps = dcqcn.rai_bps
    config.rhai_bps = dcqcn.rhai_bps
    config.min_rate_bps = dcqcn.min_rate_bps
    config.byte_counter_bytes = dcqcn.byte_counter
    config.fast_recovery = dcqcn.fast_recovery
    config.cnp_interval_ps = dcqcn.cnp_interval_ps
    config.alpha_timer_ps = dcqcn.alpha_timer_ps
    config.increase_timer_ps = dcqcn.increase_timer_ps


def _have(made: Any, what: str) -> Any:
    if not made:
        raise FabricError(f"the NICs could not make room for {what}; make the workload smaller")
    return made
