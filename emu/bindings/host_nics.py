"""The hosts of a fabric: NICs, registered memory, queue pairs, and the workload on them.

Every connection of flows is a pair of queue pairs. The C core runs the whole graph of operations.
Afterwards Python reads the records, and compares every byte in memory, unless payloads are
elided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emu._core import ffi, lib
from emu.bindings.atomic_targets import AtomicTargets
from emu.bindings.fabric import Fabric
from emu.bindings.ipoib import IpInterfaces
from emu.bindings.memory_regions import BUFFERS_VA, SINK_VA, SOURCE_VA, Bytes, Contents, lay_out
from emu.bindings.nic_config import address_of, nic_config, qp_config, set_recovery
from emu.bindings.nics import FarNic, OwnNic, connect_far, have
from emu.bindings.scale_up import ScaleUpFabric
from emu.bindings.snapshot import QueuePairView
from emu.measure.counter_table import NIC
from emu.measure.observation import Observation
from emu.measure.records import Counters, FailedQueuePair, FlowRecord, JobRecord, StepRecord
from emu.measure.requests import UNFINISHED, Requests
from emu.measure.run_progress import RunProgress
from emu.spec.bdp import bdp_packets
from emu.spec.host import Nic
from emu.spec.traffic.entry import transport_of
from emu.subnet.subnet import Subnet
from topologies.graph import Host, Topology
from topologies.guids import host_port_guid
from traffic.graph import Column, Flow, OperationGraph
from traffic.job import Job, Step
from traffic.progress_estimate import ProgressEstimate
from traffic.verb import Verb

_NEVER = 2**63 - 1
_VERBS = {
    Verb.WRITE: lib.VERB_WRITE,
    Verb.WRITE_IMM: lib.VERB_WRITE_IMM,
    Verb.SEND: lib.VERB_SEND,
    Verb.SEND_IMM: lib.VERB_SEND_IMM,
    Verb.SEND_INV: lib.VERB_SEND_INV,
    Verb.READ: lib.VERB_READ,
    Verb.CMP_SWAP: lib.VERB_CMP_SWAP,
    Verb.FETCH_ADD: lib.VERB_FETCH_ADD,
}
_TRANSPORTS = {"rc": lib.TRANSPORT_RC, "uc": lib.TRANSPORT_UC, "ud": lib.TRANSPORT_UD}
_PSNS = 1 << 24
FAILURES = {
    getattr(lib, f"STATUS_{name}"): f"IBV_WC_{name}"
    for name in (
        *("LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_PROT_ERR"),
        *("REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR"),
        *("RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR"),
    )
}
"""Statuses of messages that fail their queue pair, with their names in libibverbs."""
_QUEUES_PS = 1_000_000_000
"""The longest time that a datagram is expected to wait in queues."""
_QKEY = 0x11111111
"""The Q_Key of all datagrams of a workload."""
_READABLE = lib.ACCESS_REMOTE_READ
_WRITABLE = lib.ACCESS_LOCAL_WRITE | lib.ACCESS_REMOTE_WRITE
_BOTH = _READABLE | _WRITABLE
_REGIONS = (SOURCE_VA, SINK_VA, BUFFERS_VA)
"""The start addresses of the regions of a host."""


class HostNics:
    """All NICs of a fabric whose hosts are in this process.

    Where several processes run the fabric, those of the others have numbers here, and no more."""

    def __init__(
        self,
        fabric: Fabric,
        workload: OperationGraph,
        subnet: Subnet | None,
        *,
        ip: bool = False,
        starts: int = 0,
    ) -> None:
        """With `ip`, InfiniBand hosts can exchange IP packets too. `starts`: how often the same
        workload was started before; queue pairs continue with the PSNs after those starts."""
        self._fabric = fabric
        self._graph = workload
        self._subnet = subnet
        self._alive: list[Any] = []  # memory that C keeps pointers to
        spec, hosts = fabric.spec, fabric.topology.hosts
        self._partitions = {entry.name: entry.partition for entry in spec.traffic}
        self._transports = {entry.name: _TRANSPORTS[transport_of(entry)] for entry in spec.traffic}
        self._layout = lay_out(workload, [host.name for host in hosts], self._lead())
        self._extras = AtomicTargets(workload)
        self._contents = None
        if spec.payload == "real":
            self._contents = Contents(workload, self._layout, np.random.default_rng(spec.seed))
        self.flows = workload.message_flows
        self._place = {flow.name: place for place, flow in enumerate(self.flows)}
        first = {flow.connection: flow for flow in reversed(self.flows)}
        self._fetching = {flow.connection for flow in self.flows if flow.verb.fetches}
        qps = Counter(host for flow in first.values() for host in (flow.src, flow.dst))
        self._nics = {host.name: self._add_nic(host, qps[host.name] + ip) for host in hosts}
        self._inside: dict[str, OwnNic | FarNic] = {}
        if fabric.inside is not None:
            self._inside = {
                host.name: self._add_inside(fabric.inside, host, qps[host.name]) for host in hosts
            }
        self._keys = {nic: self._register(host, nic) for host, nic in self._all_nics()}
        fabric.connect()
        self.ip: IpInterfaces | None = None
        """The hosts' IP interfaces."""
        if ip:
            assert subnet is not None, "on Ethernet a host's kernel uses the cable itself"
            nics = {host: nic.core for host, nic in zip(hosts, self._own_nics(), strict=True)}
            self.ip = IpInterfaces(spec, nics, subnet)
        psns = Random(spec.seed)
        taken = self._psns_taken() if starts else {}
        self._psns_before = {end: starts * psns for end, psns in taken.items()}
        ends = {
            flow.connection: self._connect(flow, psns)
            for flow in self.flows
            if flow is first[flow.connection]
        }
        self._qps = [ends[flow.connection][flow.src] for flow in self.flows]
        self._workload = self._load()
        self._expected = ProgressEstimate(workload)

    def start(self) -> None:
        """Starts every operation that depends on no other, at its time."""
        lib.workload_start(self._workload)

    def close(self) -> None:
        lib.workload_free(self._workload)
        if self.ip:
            self.ip.close()

    @property
    def flow_hosts(self) -> list[str]:
        """For each flow, the host in whose memory its bytes are counted as they arrive."""
        return [flow.bytes_to for flow in self.flows]

    @property
    def flow_bytes(self) -> Any:
        """A C pointer to the bytes delivered so far, one count for each flow."""
        return lib.workload_delivered(self._workload)

    @property
    def workload(self) -> Any:
        """The core's `struct workload *`."""
        return self._workload

    @property
    def finished(self) -> bool:
        """Whether every operation is over."""
        return bool(lib.workload_is_finished(self._workload, self._fabric.now_ps))

    def progress(self, now_ns: int) -> RunProgress:
        """The progress of the workload at the emulated time `now_ns`."""
        return self.progress_of(now_ns, self.delivered(), over=self.finished)

    def progress_of(self, now_ns: int, delivered: Column, *, over: bool) -> RunProgress:
        """The same, given the bytes delivered for each flow, and whether the workload is over."""
        wanted = self._wanted(now_ns, delivered, over=over)
        return RunProgress(
            emulated_ns=now_ns,
            bytes_done=int(delivered.sum()),
            bytes_total=int(wanted.sum()),
            flows_done=int((delivered == wanted).sum()),
            flows_total=len(wanted),
        )

    def _wanted(self, now_ns: int, delivered: Column, *, over: bool) -> Column:
        """The bytes that each flow will deliver: estimates, if operations can be skipped, until the
        end of the run."""
        if not (over and self._graph.cut_short):
            return self._expected.at(now_ns, delivered)
        return self._expected.in_the_end(self.records()["status"] == lib.STATUS_SKIPPED)

    def observe(self, fabric: Observation) -> Observation:
        """The observation of the fabric, with the records of flows and NICs added."""
        return replace(
            fabric,
            flows=tuple(map(self._flow_record, self.flows)),
            jobs=tuple(map(self._job_record, self._graph.jobs)),
            steps=tuple(map(self._step_record, self._graph.steps)),
            requests=self._requests(),
            nics=self._counters(),
            failed_queue_pairs=tuple(self._failed_queue_pairs()),
        )

    @cached_property
    def _sender(self) -> dict[str, Any]:
        """Flow -> its sending queue pair."""
        return {flow.name: qp for flow, qp in zip(self.flows, self._qps, strict=True)}

    def post_counters(self, cells: NDArray[np.int64]) -> None:
        """Copies the counters of this process's NICs into a table of shape (hosts, counters)."""
        for row, nic in zip(cells, self._nics.values(), strict=True):
            if isinstance(nic, OwnNic):
                lib.nic_counter_cells(nic.core, ffi.from_buffer("int64_t[]", row))

    def post_flows(self, cells: NDArray[np.int64]) -> None:
        """Writes the progress of all flows into a table: bytes, delivered bytes, and if the queue
        pair has failed, the status of the message and the time in nanoseconds."""
        cells[:, 0] = self._bytes
        cells[:, 1] = self.delivered()
        cells[:, 2:] = 0
        for failed in self._failed_messages():
            row = cells[self._place[self._graph.flows[int(self._graph.flow_of[failed])].name]]
            if not row[2]:
                record = self.records()[failed]
                row[2:] = record["status"], record["completed_ps"] // 1000

    @cached_property
    def _bytes(self) -> Column:
        sizes = self._graph.size_bytes
        return np.array(
            [sizes[flow.operations.start : flow.operations.stop].sum() for flow in self.flows],
            np.int64,
        )

    def delivered(self) -> Column:
        """The bytes delivered so far, for each flow: the core's own memory."""
        counts = ffi.buffer(self.flow_bytes, 8 * len(self.flows))
        return np.frombuffer(counts, np.int64, len(self.flows))

    def _counters(self) -> dict[str, Counters]:
        return self.named_counters(self.counter_cells())

    def counter_cells(self) -> NDArray[np.int64]:
        """The counters of all NICs: (hosts, counters); 0 for those of other processes."""
        cells = np.zeros((len(self._nics), len(NIC.cells)), np.int64)
        self.post_counters(cells)
        return cells

    def named_counters(self, cells: NDArray[np.int64]) -> dict[str, Counters]:
        """Host -> its NIC's counters, from the cells of all NICs."""
        return {
            host: dict(zip(NIC.cells, own, strict=True))
            for host, own in zip(self._nics, cells.tolist(), strict=True)
        }

    @property
    def graph(self) -> OperationGraph:
        """The operations, in the order of `records`."""
        return self._graph

    def written_memory(self, host: str) -> list[Bytes]:
        """The bytes of a host that messages write; empty if payloads are elided."""
        if self._contents is None:
            return []
        return [
            self._contents.sink[host],
            self._contents.buffers[host],
            *(words.view(np.uint8) for words in self._extras.words(host)),
        ]

    # ---- setting up --------------------------------------------------------

    def _add_nic(self, host: Host, qps: int) -> OwnNic | FarNic:
        if not self._fabric.has_node(host.name):
            address = address_of(self._fabric, self._subnet, host.name)
            return FarNic(self._fabric.core, address, host_port_guid(host))
        regions = self._regions(host) + 1  # one more for the rings of IP
        config = nic_config(self._fabric, self._subnet, host, max_qps=qps, max_regions=regions)
        config.elides_payload = self._fabric.spec.payload == "elided"
        return OwnNic(self._fabric.add_nic(host, config))

    def _add_inside(self, inside: ScaleUpFabric, host: Host, qps: int) -> OwnNic | FarNic:
        """Adds the NIC of a GPU's links inside its server."""
        if not self._fabric.has_node(host.name):
            inside.add_far_nic(host)
            return FarNic(self._fabric.core, host.index, 0)
        config = ffi.new("struct nic_config *")
        config.max_qps, config.max_regions = qps, self._regions(host)
        config.elides_payload = self._fabric.spec.payload == "elided"
        return OwnNic(inside.add_nic(host, config))

    def _regions(self, host: Host) -> int:
        return len(_REGIONS) + self._extras.regions(host.name)

    def _own_nics(self) -> list[OwnNic]:
        return [nic for nic in self._nics.values() if isinstance(nic, OwnNic)]

    def _all_nics(self) -> list[tuple[str, OwnNic | FarNic]]:
        return [*self._nics.items(), *self._inside.items()]

    def _is_inside(self, flow: Flow) -> bool:
        return self._fabric.spec.in_one_server(flow.src, flow.dst)

    def _nic(self, flow: Flow, host: str) -> OwnNic | FarNic:
        """The NIC of a flow at one of its hosts."""
        return self._inside[host] if self._is_inside(flow) else self._nics[host]

    def _lead(self) -> Column:
        """The bytes before each message in the sink: datagrams need room for a GRH, others none."""
        transports = [self._transports.get(flow.traffic) for flow in self._graph.flows]
        is_datagram = [transport == lib.TRANSPORT_UD for transport in transports]
        return np.where(is_datagram, lib.GRH_BYTES, 0)[self._graph.flow_of]

    def _register(self, host: str, nic: OwnNic | FarNic) -> list[int]:
        """The keys of a host's source, sink and buffers at one of its NICs."""
        layout, contents = self._layout, self._contents
        return [
            nic.add_region(va, length[host], access, self._memory(at[host] if at else None))
            for va, length, access, at in (
                (SOURCE_VA, layout.source_bytes, _READABLE, contents and contents.source),
                (SINK_VA, layout.sink_bytes, _WRITABLE, contents and contents.sink),
                (BUFFERS_VA, layout.buffers_bytes, _BOTH, contents and contents.buffers),
            )
        ]

    def _memory(self, contents: Bytes | None) -> Any:
        """A C pointer to the bytes, which stay; NULL if there are none."""
        if contents is None:
            return ffi.NULL
        bytes_ = ffi.from_buffer("uint8_t[]", contents, require_writable=True)
        self._alive.append(bytes_)
        return bytes_

    def _connect(self, flow: Flow, psns: Random) -> dict[str, Any]:
        """Makes a connection: a queue pair at each host, with the settings of the first flow. One
        of another process has a stand-in here if the other end is here, and else is NULL."""
        ends, far = {}, {}
        for host in (flow.src, flow.dst):
            drawn = psns.getrandbits(24) + self._psns_before.get((flow.connection, host), 0)
            nic, psn = self._nic(flow, host), drawn % _PSNS
            if isinstance(nic, OwnNic):
                ends[host] = self._add_qp(nic, flow, host, psn)
            else:
                far[host] = nic.add_qp(psn)
        if not far:
            lib.qp_connect_pair(*ends.values())
        elif ends:
            (own,), ((host, remote),) = ends.values(), far.items()
            ends[host] = connect_far(own, self._far_config(flow), remote)
        return dict.fromkeys((flow.src, flow.dst), ffi.NULL) | ends

    def _far_config(self, flow: Flow) -> Any:
        """What is to be known of a queue pair of another process."""
        config = ffi.new("struct qp_config *")
        config.transport, config.qkey = self._transport(flow), _QKEY
        return config

    def _transport(self, flow: Flow) -> int:
        return int(self._transports.get(flow.traffic, lib.TRANSPORT_RC))

    def _psns_taken(self) -> Counter[tuple[str, str]]:
        """How many PSNs the requests of each requesting queue pair use."""
        taken: Counter[tuple[str, str]] = Counter()
        for flow in self.flows:
            mtu = min(self._fabric.spec.host(host).nic.mtu for host in (flow.src, flow.dst))
            sizes = self._graph.size_bytes[flow.operations.start : flow.operations.stop]
            taken[flow.connection, flow.src] += int(np.maximum(1, -(-sizes // mtu)).sum())
        return taken

    def _add_qp(self, nic: OwnNic, flow: Flow, host: str, psn: int) -> Any:
        spec = self._fabric.spec
        settings = Nic() if self._is_inside(flow) else spec.host(host).nic
        peer = spec.host(flow.dst if host == flow.src else flow.src).nic
        dscp, priority = spec.dscp(host, flow.priority), spec.priority(host, flow.priority)
        far = flow.dst if host == flow.src else flow.src
        config = qp_config(
            settings,
            peer,
            psn=psn,
            dscp=dscp,
            priority=priority,
            path_packets=lambda: self._path_packets(host, far, min(settings.mtu, peer.mtu)),
        )
        if flow.priority is not None:
            config.sl = flow.priority
        config.transport, config.qkey = self._transport(flow), _QKEY
        self._set_subnet(config, flow, host)
        if flow.connection in self._fetching:
            config.max_dest_rd_atomic = peer.max_rd_atomic
        recovery = settings if self._is_inside(flow) else spec.host(flow.src).nic
        set_recovery(
            config,
            recovery.recovery_scheme,
            lambda: self._path_packets(flow.src, flow.dst, config.mtu),
        )
        return have(lib.nic_add_qp(nic.core, config), "a queue pair")

    def _set_subnet(self, config: Any, flow: Flow, host: str) -> None:
        """Sets the attributes of the path to the other end, which the subnet manager determines."""
        if self._subnet is None or self._is_inside(flow):
            return
        policy, far = self._fabric.spec.subnet, flow.dst if host == flow.src else flow.src
        config.sl = self._subnet.levels.get(host, {}).get(far, config.sl)
        config.path_bits = self._place[flow.name] % (1 << self._subnet.lmc)
        partition = self._partitions.get(flow.traffic)
        if partition is not None:
            config.pkey = policy.partitions[partition].key_of(host)

    def _path_packets(self, src: str, dst: str, mtu_bytes: int) -> int:
        return bdp_packets(self._fabric.topology, self._fabric.spec, src, dst, mtu_bytes)

    def _load(self) -> Any:
        graph = self._graph
        own, here = self.own_hosts(), self._operations_here()
        first, dependents = graph.dependents()
        rows: slice | NDArray[np.int64] = slice(None)
        config = ffi.new("struct workload_config *")
        if not own.all():
            first, dependents = _only_here(first, dependents, here)
            rows = np.flatnonzero(here)
            config.own_hosts = ffi.from_buffer("bool[]", own)
            config.is_here = ffi.from_buffer("bool[]", here)
            self._alive.append(here)
        table = np.zeros(len(graph.operations), _OPERATION)
        self._fill(table, rows)
        table["first_dependent"][rows] = first[:-1][rows]
        table["dependent_count"][rows] = np.diff(first)[rows]
        operations = ffi.from_buffer("struct operation[]", table)
        waiting = ffi.from_buffer("uint32_t[]", dependents.astype(np.uint32))
        self._alive += [operations, waiting]
        clocks = ffi.new("struct clock *[]", [self._fabric.clock(host) for host in self._nics])
        config.operations, config.count = operations, len(table)
        config.dependents, config.dependent_count = waiting, len(dependents)
        config.flow_count, config.device_count = max(1, len(self.flows)), max(1, len(graph.devices))
        config.clocks, config.host_count = clocks, len(clocks)
        config.delivery_limit_ps = _delivery_limit_ps(self._fabric.topology)
        workload = lib.workload_new(config)
        return have(workload, "the workload")

    def own_hosts(self) -> NDArray[np.bool_]:
        """Whether this process runs each host."""
        return np.array([isinstance(nic, OwnNic) for nic in self._nics.values()], np.bool_)

    def _operations_here(self) -> NDArray[np.bool_]:
        """Whether the sender or the receiver of each operation is in this process."""
        own = dict(zip(self._nics, self.own_hosts().tolist(), strict=True))
        flows = [own[flow.src] or own[flow.dst] for flow in self._graph.flows]
        return np.array(flows, np.bool_)[self._graph.flow_of]

    def _fill(self, table: NDArray[np.void], rows: slice | NDArray[np.int64]) -> None:
        """Fills in rows of the table of operations: hosts, addresses, keys, times."""
        graph, layout = self._graph, self._layout
        number = {host: place for place, host in enumerate(self._nics)}

        def of_flow(values: list[int]) -> NDArray[np.int64]:
            return np.array(values, np.int64)[graph.flow_of]

        flows = graph.flows

        def put(name: str, column: NDArray[np.int64]) -> None:
            table[name][rows] = column[rows]

        put("qp", of_flow([_pointer(self._sender.get(flow.name, ffi.NULL)) for flow in flows]))
        put("host", of_flow([number[flow.src] for flow in flows]))
        put("far", of_flow([number[flow.dst] for flow in flows]))
        put("verb", of_flow([_VERBS.get(flow.verb, 0) for flow in flows]))
        put("flow", of_flow([self._place.get(flow.name, 0) for flow in flows]))
        from_nics = [self._nic(flow, flow.bytes_from) for flow in flows]
        to_nics = [self._nic(flow, flow.bytes_to) for flow in flows]
        from_key = self._keys_at(layout.source_va, from_nics)
        to_key = self._keys_at(layout.sink_va, to_nics)
        fetches = np.array([flow.verb.fetches for flow in flows], bool)[graph.flow_of]
        put("local_va", np.where(fetches, layout.sink_va, layout.source_va))
        put("lkey", np.where(fetches, to_key, from_key))
        put("remote_va", np.where(fetches, layout.source_va, layout.sink_va - self._lead()))
        put("rkey", np.where(fetches, from_key, to_key))
        put("sum_va", layout.sum_va)
        sum_key = self._keys_at(layout.sum_va, to_nics)
        put("sum_key", np.where(layout.sum_va, sum_key, 0))
        put("length", graph.size_bytes)
        put("not_before_ps", graph.not_before_ns * 1000)
        put("not_after_ps", graph.not_after_ns * 1000)
        put("duration_ps", graph.lasts_ns * 1000)
        put("device", of_flow([graph.devices.get(flow.device or "", 0) for flow in flows]))
        put("busy_ps", graph.busy_ps)
        self._extras.fill(table, self._nic, elided=self._contents is None)

    def _keys_at(self, va: NDArray[np.int64], nics: list[OwnNic | FarNic]) -> NDArray[np.int64]:
        """The key of the region of each operation's address, at the NIC of its flow."""
        keys = np.array([self._keys[nic] for nic in nics], np.int64).reshape(-1, len(_REGIONS))
        region = np.searchsorted(_REGIONS, va, side="right") - 1
        return keys[self._graph.flow_of, region]

    # ---- inspection ----------------------------------------------------------

    def queue_pair(self, flow: str) -> QueuePairView:
        """The present state of a flow's sending queue pair. Raises KeyError for an unknown flow."""
        qp = self._sender[flow]
        seen = lib.qp_look(qp)
        fields = {name: getattr(seen, name) for name, _ in ffi.typeof(seen).fields}
        return QueuePairView(**fields, rate_bps=lib.qp_rate_bps(qp))

    # ---- results --------------------------------------------------------

    def _flow_record(self, flow: Flow) -> FlowRecord:
        ids = self._not_skipped(flow)
        own = self.records()[ids]
        started = int(own["started_ps"].min(initial=_NEVER))
        delivered = int(own["delivered_ps"].max(initial=0))
        planned = int(self._graph.not_before_ns[flow.operations.start])
        return FlowRecord(
            name=flow.name,
            traffic=flow.traffic,
            src=flow.src,
            dst=flow.dst,
            op=flow.verb.value,
            bytes=int(self._graph.size_bytes[ids].sum()),
            start_ns=planned if started == _NEVER else started // 1000,
            end_ns=None if delivered == _NEVER else max(delivered // 1000, planned),
            retransmitted_packets=int(own["retransmitted_packets"].sum()),
            completed=bool((own["status"] == lib.STATUS_SUCCESS).all())
            and self._arrived(flow, ids),
            delivered_bytes=int(own["delivered_bytes"].sum()),
            observed_until_ns=self._fabric.now_ns if delivered == _NEVER else delivered // 1000,
        )

    def _failed_queue_pairs(self) -> Iterator[FailedQueuePair]:
        """Queue pairs with a failed message. Their later messages were flushed."""
        records, graph = self.records(), self._graph
        for id in self._failed_messages():
            flow = graph.flows[int(graph.flow_of[id])]
            yield FailedQueuePair(
                flow=flow.name,
                src=flow.src,
                dst=flow.dst,
                at_ns=int(records["completed_ps"][id]) // 1000,
                status=FAILURES[int(records["status"][id])],
            )

    def _failed_messages(self) -> list[int]:
        """Failed messages, in order of time."""
        records = self.records()
        failed = np.flatnonzero(np.isin(records["status"], list(FAILURES)))
        order = np.argsort(records["completed_ps"][failed], kind="stable")
        return [int(id) for id in failed[order]]

    def _not_skipped(self, flow: Flow) -> Column:
        """The operations of a flow that were not skipped."""
        own = slice(flow.operations.start, flow.operations.stop)
        begun = self.records()["status"][own] != lib.STATUS_SKIPPED
        return flow.operations.start + np.flatnonzero(begun)

    def _requests(self) -> Requests:
        graph, records = self._graph, self.records()
        return Requests.of_graph(
            graph,
            start_ns=_in_ns(records["started_ps"][graph.begins]),
            end_ns=_in_ns(records["delivered_ps"][graph.ends]),
            skipped=records["status"][graph.begins] == lib.STATUS_SKIPPED,
        )

    def _job_record(self, job: Job) -> JobRecord:
        span_ns = self._span_ns(job.name)
        finished = span_ns[1] is not None
        wrong = self._contents.wrong(job) if finished and self._contents else None
        return JobRecord.of(job, span_ns, wrong)

    def _step_record(self, step: Step) -> StepRecord:
        start_ns, end_ns = self._span_ns(step.name)
        return StepRecord(step.name, start_ns, end_ns, step.work_alone_ns, step.bytes_for)

    def _span_ns(self, traffic: str) -> tuple[int | None, int | None]:
        """When the first operation of an entry started, and when the last was delivered."""
        records = self.records()
        own = np.concatenate(
            [
                records[flow.operations.start : flow.operations.stop]
                for flow in self._graph.flows
                if flow.traffic == traffic
            ]
        )
        started = int(own["started_ps"].min())
        over = (own["status"] == lib.STATUS_SUCCESS).all()
        return (
            None if started == _NEVER else started // 1000,
            int(own["delivered_ps"].max()) // 1000 if over else None,
        )

    def records(self) -> NDArray[np.void]:
        """The records of all operations so far: the core's own memory."""
        records = lib.workload_records(self._workload)
        size = len(self._graph.operations) * _RECORD.itemsize
        return np.frombuffer(ffi.buffer(records, size), _RECORD)

    def _arrived(self, flow: Flow, ids: Column) -> bool:
        """Whether all delivered bytes equal the sent ones. A flow without bytes is correct."""
        contents, sizes = self._contents, self._graph.size_bytes
        if contents is not None and flow.verb.is_atomic:
            return self._extras.counted(flow, contents.fetched(flow.operations, flow.src))
        return contents is None or all(
            contents.arrived(id, int(sizes[id]), flow.bytes_from, flow.bytes_to)
            for id in ids.tolist()
        )


def _only_here(
    first: NDArray[np.int64], dependents: NDArray[np.int64], here: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Dependents, and where those of each operation begin, without pairs of which one is not
    here."""
    of = np.repeat(np.arange(len(here)), np.diff(first))
    kept = here[of] & here[dependents]
    counts = np.bincount(of[kept], minlength=len(here))
    return np.concatenate([[0], np.cumsum(counts)]), dependents[kept]


def _delivery_limit_ps(topology: Topology) -> int:
    """How long after the last event an unreliable message can still arrive: a time for queues, and
    for long cables their delay."""
    delays = (cable.delay_ps for cable in topology.cables)
    return _QUEUES_PS + sum(delay for delay in delays if delay > _QUEUES_PS // 10)


def _in_ns(time_ps: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(time_ps == _NEVER, UNFINISHED, time_ps // 1000)


def _pointer(pointer: Any) -> int:
    return int(ffi.cast("intptr_t", pointer))


def _row_type(struct: str) -> np.dtype[np.void]:
    """The numpy type of a C struct of numbers and pointers; an array of it is a table."""
    fields = ffi.typeof(struct).fields
    return np.dtype(
        {
            "names": [name for name, _ in fields],
            "formats": [_column_type(field.type) for _, field in fields],
            "offsets": [field.offset for _, field in fields],
            "itemsize": ffi.sizeof(struct),
        }
    )


def _column_type(ctype: Any) -> str:
    signed = ctype.kind == "primitive" and int(ffi.cast(ctype, -1)) < 0
    return f"{'i' if signed else 'u'}{ffi.sizeof(ctype)}"


_OPERATION = _row_type("struct operation")
_RECORD = _row_type("struct message_record")
