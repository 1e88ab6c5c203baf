"""A topology in the C core: switches, cables, and cable ends to other processes.

The same code builds three subsets of it:

    NodeSubset.ALL        all nodes, for the virtual clock
    NodeSubset.SWITCHES   the switches of a lab: hosts are in another process
    NodeSubset.HOSTS      the NICs of a lab: leaves are in another process

Ports have the same index in all of them: switches first, then hosts, in the order of the
topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from emu._core import ffi, lib
from emu.bindings.faults import AddedFault, Places, add_faults
from emu.bindings.partition import WHOLE, Partition
from emu.bindings.port_config import FRAME_BYTES, QosMaps, cable_end_config, set_port
from emu.bindings.routing import IpRoutes, LidRoutes
from emu.bindings.scale_up import ScaleUpFabric, ports_of
from emu.bindings.snapshot import PortView
from emu.bindings.switch_config import SwitchConfig
from emu.bindings.vlans import add_vlans
from emu.errors import FabricError, UsageError
from emu.fabric_kind import Framing
from emu.measure.counter_table import PORT
from emu.measure.observation import Observation, Samples
from emu.measure.raw_counters import CounterTable, RawCounters
from emu.measure.records import Deadlock, SweepRecord
from emu.spec.fault import Fault
from emu.spec.lanes import lane_buffers
from emu.spec.outages import Rerouting, slowest_convergence_ps
from emu.spec.rerouting import MAX_HINTED_PORTS, is_hinted, reroutings
from emu.spec.scenario import Spec
from emu.subnet.subnet import Lfts, Subnet
from topologies.graph import Cable, Host, Port, Switch, Topology

CAPTURE_RING_BYTES = 1 << 25
SAMPLE_INTERVAL_PS = 500_000
SAMPLE_CELLS = 1 << 22
"""The largest table of samples, in cells of 8 bytes; it has at least 256 rows in any case."""
WANTED_CELLS = 1 << 24
"""Used instead of SAMPLE_CELLS if the spec sets the sampling interval."""

DEADLOCK_INTERVAL_PS = 100_000_000
"""The interval of the search for deadlocks. They never end by themselves, so it may be long."""

_FRAMES_AT_HAND = 32
"""Frames for each port whose memory is touched before a run in a lab: a queue of 128 KB."""


class FrameKind(IntEnum):
    """The format of a frame; see frame.h."""

    ETHERNET = lib.FRAME_ETHERNET
    IB = lib.FRAME_IB
    IB_LINK = lib.FRAME_IB_LINK


class NodeSubset(Enum):
    """Which nodes of the topology are in this process."""

    ALL = "all"
    SWITCHES = "switches"
    HOSTS = "hosts"


class Fabric:
    """The core's fabric. Use it as a context manager: its memory is outside Python's heap."""

    def __init__(
        self,
        spec: Spec,
        topology: Topology,
        members: NodeSubset,
        *,
        subnet: Subnet | None = None,
        marks: bool = True,
        schedules_reroutes: bool = True,
        partition: Partition = WHOLE,
        exact: bool = False,
    ) -> None:
        """InfiniBand needs `subnet`. Without `marks`, the kernel marks where it can. With
        `schedules_reroutes`, the fabric schedules in advance the route changes that the spec's
        faults cause. Without it, `reroute` changes routes; a lab needs this, as its faults come and
        go. With `exact`, the processes of a lab keep the same emulated time."""
        self.spec = spec
        self.topology = topology
        self.members = members
        self.subnet = subnet
        self._marks = marks
        self._partition = partition
        self._schedules_reroutes = schedules_reroutes
        self._exact = exact
        self.switches: dict[str, Any] = {}
        self.faults: list[AddedFault] = []
        self._lid_routes: list[LidRoutes] = []
        self._ip_routes: dict[str, IpRoutes] = {}
        self.qos_maps = QosMaps()
        self._sweeps: list[SweepRecord] = []
        inside = spec.scale_up if members is not NodeSubset.SWITCHES else None
        ports = len(self.index) + (len(ports_of(inside)) if inside else 0)
        self.port_count = ports
        """How many ports the core has room for, those inside servers too."""
        self._core = _have(lib.fabric_new(self._config(ports)))
        self.inside: ScaleUpFabric | None = None
        try:
            self._add_nodes(inside)
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        lib.fabric_free(self._core)
        self._core = ffi.NULL

    @property
    def core(self) -> Any:
        """The core's `struct fabric *`. Raises UsageError when it has been freed."""
        if self._core == ffi.NULL:
            raise gone()
        return self._core

    @cached_property
    def index(self) -> dict[Port, int]:
        """The index of every port, in this process or not."""
        topology = self.topology
        ports = (port for node in topology.nodes for port in topology.ports[node.name])
        return {port: index for index, port in enumerate(ports)}

    def _config(self, ports: int) -> Any:
        config = ffi.new("struct fabric_config *")
        config.seed, config.ports = self.spec.seed, ports
        config.small_frames, config.large_frames = self._frames()
        config.frame_bytes = FRAME_BYTES
        config.parts, config.threads = self._partition.parts, self._partition.threads
        return config

    def part_of(self, node: str) -> int:
        """The number of the part that a node is in."""
        return self._partition.part_of(node)

    def has_node(self, node: str) -> bool:
        """Whether a node is in this process."""
        if self.members is NodeSubset.ALL:
            return self._partition.has(node)
        return (node in self.topology.host) == (self.members is NodeSubset.HOSTS)

    def clock(self, node: str) -> Any:
        """The clock of a node: a `struct clock *`."""
        return lib.fabric_clock(self.core, self.part_of(node))

    def _reroutings(self, switch: Switch) -> list[Rerouting]:
        return [change for change in self._changes_of_routes if change.switch == switch.name]

    @cached_property
    def _changes_of_routes(self) -> list[Rerouting]:
        return reroutings(self.spec) if self._schedules_reroutes else []

    # ---- building ----------------------------------------------------------

    def _add_nodes(self, inside: Topology | None) -> None:
        """Adds everything but NICs. `inside`: the scale-up fabric of this process, if any."""
        if inside is not None:
            self.inside = ScaleUpFabric(
                self.core,
                inside,
                self.spec.hosts.scale_up,
                len(self.index),
                self.part_of,
                self.has_node,
            )
        for switch in self.topology.switches:
            if self.has_node(switch.name):
                self._add_switch(switch)
        if self.members is NodeSubset.ALL:
            self._add_far_ports()
        else:
            self._add_cable_ends()

    def add_nic(self, host: Host, config: Any) -> Any:
        """The host's NIC (a `struct nic *`), from a `struct nic_config *`."""
        port = self.topology.ports[host.name][0]
        part = self.part_of(host.name)
        return _have(lib.fabric_add_nic(self.core, part, self.index[port], config))

    def connect(self) -> None:
        """Connects all cables with both ends in this process, and adds their faults. All NICs must
        have been added."""
        here = self._ports_here()
        for cable in self.topology.cables:
            if cable.a in here and cable.b in here:
                a, b = self.index[cable.a], self.index[cable.b]
                lib.fabric_connect(self.core, a, b, cable.rate_bps, cable.delay_ps)
        if self.inside is not None:
            self.inside.connect()
        has_lines = self.members is not NodeSubset.HOSTS
        has_nics = self.members is not NodeSubset.SWITCHES
        receivers = frozenset(self._own_ports()) if self._exact else None
        of_lost_links = frozenset(self.index if self.members is NodeSubset.ALL else here)
        self._places = Places(of_lost_links, has_lines, has_nics, receivers)
        self.faults = self._add_faults(self.spec)

    def set_fault(self, fault: Fault) -> None:
        """Starts a fault now, if it belongs to this process. The fabric must be connected."""
        self.add_faults((fault.model_copy(update={"at_ps": lib.fabric_now(self.core)}),))

    def add_faults(self, faults: tuple[Fault, ...], numbers: Sequence[int] = ()) -> None:
        """Adds faults to those of the spec, each at its time. The fabric must be connected.
        `numbers`: their places among the spec's faults, for their random numbers."""
        self.faults += self._add_faults(self.spec.model_copy(update={"faults": faults}), numbers)

    def clear_fault(self, name: str) -> None:
        """Ends the faults of this name."""
        for added in [fault for fault in self.faults if fault.name == name]:
            for part in added.parts:
                lib.fault_clear(part)
            self.faults.remove(added)

    def _add_faults(self, spec: Spec, numbers: Sequence[int] = ()) -> list[AddedFault]:
        numbers = numbers or range(len(spec.faults))
        runs = self._partition.has
        return add_faults(self.core, spec, self.topology, self.index, self._places, runs, numbers)

    @property
    def links_changed_flag(self) -> Any:
        """A C pointer to bool: whether links have changed since `take_link_changes`."""
        return lib.fabric_links_changed_flag(self.core)

    def take_link_changes(self) -> tuple[int, frozenset[Cable]] | None:
        """The time of the last link change in picoseconds, and the cables that are down; None: no
        change since the last call."""
        at_ps = ffi.new("int64_t *")
        if not lib.fabric_links_changed(self.core, at_ps):
            return None
        down = (
            cable
            for cable in self.topology.cables
            if not lib.fabric_link_is_up(self.core, self.index[cable.a])
        )
        return at_ps[0], frozenset(down)

    def follow(self, lfts: Lfts, down: frozenset[Cable], cause_ps: int, seconds: float) -> int:
        """Gives the switches new tables for the cables that are `down` since `cause_ps`. Returns
        when the last switch uses them, in picoseconds.

        `seconds`: wall-clock time that the subnet manager needed for the tables.
        """
        now_ps = lib.fabric_now(self.core)
        at_ps = max(routes.follow(lfts, down, cause_ps, now_ps) for routes in self._lid_routes)
        self._sweeps.append(SweepRecord(cause_ps // 1000, at_ps // 1000, seconds))
        return at_ps

    def reroute(self, changes: Mapping[str, Mapping[str, Sequence[int]]], cause_ps: int) -> int:
        """Gives the switches new routes (switch -> host -> port numbers) after links changed at
        `cause_ps`. Returns when the last switch uses them, in picoseconds."""
        now_ps = lib.fabric_now(self.core)
        times = [
            self._ip_routes[name].follow(own, cause_ps, now_ps) for name, own in changes.items()
        ]
        return max(times, default=now_ps)

    def set_routes(self, changes: Mapping[str, Mapping[str, Sequence[int]]], at_ps: int) -> int:
        """Gives the switches routes (switch -> host -> port numbers) that are in force from `at_ps`
        on, or from now on if that has passed. Returns that time, in picoseconds."""
        from_ps = max(at_ps, int(lib.fabric_now(self.core)))
        for name, own in changes.items():
            self._ip_routes[name].change(own, from_ps)
        return from_ps

    def hint(self, *, always: bool) -> None:
        """Whether packets carry their next hop to Open vSwitch, because its tables lag behind.
        Switches with a load balancing that it cannot do always give hints. Others with more ports
        than a hint can name give none."""
        for name, core in self.switches.items():
            may = len(self.topology.ports[name]) <= MAX_HINTED_PORTS
            lib.switch_set_hints(core, (always and may) or is_hinted(self.spec, name, ()))

    def capture(self, ports: Iterable[Port]) -> None:
        """Captures the frames of ports from now on, except those that other processes run; see
        `captured`."""
        for port in ports:
            if not self._partition.has(port.node):
                continue
            done = lib.fabric_capture(self.core, self.index[port], CAPTURE_RING_BYTES)
            _have_memory(done)

    def end_capture(self, index: int) -> None:
        """Ends the capture of the port with this index. Frames captured so far remain."""
        lib.fabric_capture_end(self.core, index)

    def sample(
        self,
        flow_bytes: Any = ffi.NULL,
        hosts: Sequence[str] = (),
        *,
        flows_elsewhere: int = 0,
    ) -> None:
        """Samples own ports from the start of the run, and a counter at `flow_bytes` for each of
        these hosts, which is changed there.

        On the exact clock, and where several processes run the fabric, all sample at the same times
        and as often as one process with all ports and flows would; `flows_elsewhere` are those of
        other processes.
        """
        flows = len(hosts)
        parts = [self.part_of(host) for host in hosts]
        ports = [self.index[port] for port in self._own_ports()]
        in_step = self._exact or self.members is NodeSubset.ALL
        width = len(self.index) if in_step else len(ports)
        columns = 1 + width * lib.GAUGES + flows + flows_elsewhere
        interval_ps, rows = SAMPLE_INTERVAL_PS, max(256, min(4096, SAMPLE_CELLS // columns))
        if self.spec.sample_interval_ps is not None:
            interval_ps, rows = self.spec.sample_interval_ps, max(256, WANTED_CELLS // columns)
        _have_memory(
            lib.fabric_sample(
                self.core, interval_ps, rows, ports, len(ports), flow_bytes, parts, flows
            )
        )

    def prefault(self) -> None:
        """Touches memory that a lab is likely to need: a page fault would make frames late."""
        lib.fabric_prefault(self.core, _FRAMES_AT_HAND * len(self._own_ports()))

    def start(self) -> None:
        if self.members is not NodeSubset.HOSTS:
            _have_memory(lib.fabric_watch_deadlocks(self.core, DEADLOCK_INTERVAL_PS))
        lib.fabric_start(self.core)

    def refuse_short_memory(self) -> None:
        """Raises FabricError if memory was short for what parts of the fabric send each other."""
        _have_memory(not lib.fabric_out_of_memory(self.core))

    # ---- inspection --------------------------------------------------------

    @property
    def now_ps(self) -> int:
        return int(lib.fabric_now(self.core))

    @property
    def now_ns(self) -> int:
        return self.now_ps // 1000

    def counters(self, port: Port) -> RawCounters:
        """A port's raw counters: name -> one value per class, or a single one."""
        return self.counter_table([port])[self.topology.port_name[port]]

    def counter_table(self, ports: Iterable[Port]) -> CounterTable:
        """The raw counters of ports, as they are now."""
        name = self.topology.port_name
        return self._counters_at({name[port]: self.index[port] for port in ports})

    def _counters_at(self, indices: Mapping[str, int]) -> CounterTable:
        """The counters of ports, given as name -> index."""
        cells = self.counter_cells([*indices.values()])
        return CounterTable(tuple(indices), PORT.cells, cells)

    def _read_counters(self, cells: NDArray[np.int64], indices: Iterable[int]) -> None:
        """Reads counters into the first cells of each row."""
        for row, index in zip(cells, indices, strict=True):
            lib.fabric_counters(self.core, index, ffi.from_buffer("int64_t[]", row))

    def counter_cells(self, indices: Sequence[int]) -> NDArray[np.int64]:
        """The counters of ports, given by index: a row of cells for each."""
        cells = np.empty((len(indices), sum(PORT.cells.values())), np.int64)
        self._read_counters(cells, indices)
        return cells

    def waited_ns(self, ports: Iterable[Port]) -> NDArray[np.int64]:
        """For each port, the total time for which lanes had packets and no credit."""
        waited_ps: NDArray[np.int64] = self.counter_table(ports).counter("xmit_wait").sum(axis=1)
        return waited_ps // 1000

    def queued(self, port: Port, queue: int) -> int:
        """The bytes that are now in a queue of a switch port."""
        return int(lib.fabric_queued(self.core, self.index[port], queue))

    def held(self, port: Port, priority: int) -> int:
        """The bytes that are now in the ingress buffer of a port, for a priority or lane."""
        return int(lib.fabric_held(self.core, self.index[port], priority))

    def paused(self, port: Port, priority: int) -> bool:
        """Whether a priority of a port is paused now."""
        return bool(lib.fabric_paused(self.core, self.index[port], priority))

    def observe(self, *, is_over: bool = True) -> Observation:
        """All counters and samples of this process so far. While a run is not over, no sample is
        taken, so that its results do not depend on who looks at it."""
        return self.observation(
            ports=self.counter_table(self._own_ports()),
            scale_up=self._counters_at(self.inside.ports) if self.inside else {},
            samples=self._samples(and_now=is_over),
        )

    def observation(
        self,
        *,
        ports: Mapping[str, RawCounters],
        scale_up: Mapping[str, RawCounters],
        samples: Samples,
    ) -> Observation:
        """An observation with these counters and samples, and all else that was observed so far."""
        return Observation(
            ports=ports,
            stand_ins=self.counter_table(self._stand_ins()),
            scale_up=scale_up,
            samples=samples,
            frames_exhausted=lib.fabric_frames_exhausted(self.core),
            captures_missed=self.captures_missed,
            deadlocks=self.deadlocks(),
            faults=tuple(fault.record() for fault in self.faults),
            sweeps=(*self._swept_before(), *self._sweeps),
        )

    def _swept_before(self) -> Iterator[SweepRecord]:
        """Sweeps that were scheduled before the run and have happened by now."""
        if self.members is NodeSubset.HOSTS:
            return  # the process of the switches reports them
        for later in self.subnet.later if self.subnet else ():
            in_force_ns = (later.at_ps + slowest_convergence_ps(self.spec)) // 1000
            if in_force_ns <= self.now_ns:
                yield SweepRecord(later.at_ps // 1000, in_force_ns, None)

    def deadlocks(self) -> tuple[Deadlock, ...]:
        """The deadlocks found so far."""
        return tuple(map(self._deadlock, range(lib.fabric_deadlocks(self.core))))

    def post_counters(self, cells: Any, ports: Iterable[Port]) -> None:
        """Copies the counters of each port into the first cells of its row."""
        self._read_counters(cells, map(self.index.__getitem__, ports))

    def _deadlock(self, which: int) -> Deadlock:
        found_at, priority = ffi.new("int64_t *"), ffi.new("uint8_t *")
        indices = ffi.new("uint32_t **")
        length = lib.fabric_deadlock(self.core, which, found_at, priority, indices)
        name = {self.index[port]: name for port, name in self.topology.port_name.items()}
        ports = tuple(name[indices[0][i]] for i in range(length))
        return Deadlock(found_at[0] // 1000, priority[0], ports)

    def _samples(self, *, and_now: bool) -> Samples:
        """All samples so far, and with `and_now` one taken now."""
        ports = self._own_ports()
        width = len(ports) * lib.GAUGES
        table, order = self.sampled(and_now=and_now)
        by_port = table[:, 1 : 1 + width].reshape(len(table), len(ports), lib.GAUGES)
        quantities = np.empty((lib.GAUGES, len(order), len(ports)), np.int64)
        for row, place in enumerate(order):  # one row at a time fits into the cache
            quantities[:, row] = by_port[place].T
        return samples_of(
            table[order, 0],
            [self.topology.port_name[port] for port in ports],
            quantities,
            table[:, 1 + width :][order],
        )

    def sampled(self, *, and_now: bool) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """The core's table of samples (columns: time, gauges of own ports, bytes of flows), and the
        positions of its rows in order of time. The table is empty unless `sample` was called."""
        values, places = ffi.new("int64_t **"), ffi.new("uint32_t **")
        columns = ffi.new("uint32_t *")
        rows = lib.fabric_samples(self.core, values, places, columns)
        if values[0] == ffi.NULL or not (rows or and_now):
            wide = max(1 + len(self._own_ports()) * lib.GAUGES, columns[0])
            return np.empty((0, wide), np.int64), np.empty(0, np.uint32)
        if and_now:
            lib.fabric_sample_now(self.core)
            rows = lib.fabric_samples(self.core, values, places, columns)
        order = np.frombuffer(ffi.buffer(places[0], rows * 4), np.uint32)
        memory = ffi.buffer(values[0], (int(order.max()) + 1) * columns[0] * 8)
        return np.frombuffer(memory, np.int64).reshape(-1, columns[0]), order

    @property
    def captures_missed(self) -> int:
        """Frames so far for which the capture memory had no room."""
        return int(lib.fabric_captures_missed(self.core))

    def captures_missed_at(self, index: int) -> int:
        """As `captures_missed`, for the port with this index."""
        return int(lib.fabric_captures_missed_at(self.core, index))

    def captured(self) -> bytes:
        """Capture records since the last call (layout: tap.h).

        Any thread may call it, but only one at a time.
        """
        pieces = []
        start = ffi.new("uint8_t **")
        while size := lib.fabric_captured(self.core, start):
            pieces.append(bytes(ffi.buffer(start[0], size)))
            lib.fabric_captured_taken(self.core, size)
        return b"".join(pieces)

    def view(self, port: Port) -> PortView:
        """The present state of a port."""
        lanes = self.spec.fabric_kind.framing is Framing.INFINIBAND
        classes = range(lib.CLASSES if lanes else lib.PRIORITIES)

        def per_class(look: Any) -> tuple[Any, ...]:
            return tuple(look(self.core, self.index[port], klass) for klass in classes)

        return PortView(
            queued_bytes=per_class(lib.fabric_queued),
            held_bytes=per_class(lib.fabric_held),
            paused=per_class(lib.fabric_paused),
            credit_bytes=per_class(lib.fabric_credit),
        )

    def inject(self, port: Port, kind: FrameKind, frame: bytes) -> bool:
        """Puts a frame on the cable at `port`. False when it is too long, or no frame is free."""
        return bool(lib.fabric_inject(self.core, self.index[port], kind, frame, len(frame)))

    # ---- details -----------------------------------------------------------

    def _frames(self) -> tuple[int, int]:
        """How many small and large frames (frame.h) to allocate: more than all buffers hold."""
        nodes = len(self.topology.nodes)
        if self.spec.fabric_kind.uses_credits:
            buffers = lane_buffers(self.spec, self.topology)
        else:
            buffers = sum(self.spec.switch(s.name).buffer_bytes for s in self.topology.switches)
        if self.spec.scale_up is not None:
            links = 2 * len(self.spec.scale_up.cables)
            buffers += links * self.spec.hosts.scale_up.buffer_bytes
        return 16384 + 2048 * nodes, 4096 + 64 * nodes + buffers // 1024

    def _own_ports(self) -> list[Port]:
        """The ports of the nodes in this process, in order of index."""
        if self.members is NodeSubset.ALL and self._partition.own is None:
            return [*self.index]
        return [port for port in self.index if self.has_node(port.node)]

    def _stand_ins(self) -> list[Port]:
        """The ports of the other process for which cable ends stand in, on the exact clock."""
        if not self._exact:
            return []
        own = self._own_ports()
        return sorted(
            {self.topology.peer[port] for port in own} - {*own}, key=self.index.__getitem__
        )

    def _ports_here(self) -> set[Port]:
        """Own ports, and the cable ends in place of their peers in other processes."""
        own = set(self._own_ports())
        return own | {self.topology.peer[port] for port in own}

    def _add_cable_ends(self) -> None:
        """Adds the ends of hosts' cables whose node is in the other process."""
        config = cable_end_config(self.spec.fabric_kind)
        for host in self.topology.hosts:
            for port in self.topology.ports[host.name]:
                outside = self.topology.peer[port] if self.members is NodeSubset.HOSTS else port
                _have_memory(self._add_cable_end(outside, config))

    def _add_cable_end(self, port: Port, config: Any) -> bool:
        index = self.index[port]
        if not self._exact:
            return bool(lib.fabric_add_socket(self.core, index, config))
        is_switch = port.node in self.topology.switch
        cuts = is_switch and self.spec.cuts_through(port.node)
        return bool(lib.fabric_add_stand_in(self.core, index, config, cuts))

    def _add_far_ports(self) -> None:
        """Adds the ports that other processes run at the far ends of cables to nodes here."""
        if self._partition.own is None:
            return
        far = self._ports_here() - {*self._own_ports()}
        for port in sorted(far, key=self.index.__getitem__):
            config = ffi.new("struct port_config *")
            set_port(config, self.spec, self.topology, port)
            cuts = port.node in self.topology.switch and self.spec.cuts_through(port.node)
            part, index = self.part_of(port.node), self.index[port]
            _have_memory(lib.fabric_add_far_port(self.core, part, index, config, cuts))

    def _add_switch(self, switch: Switch) -> None:
        spec, topology = self.spec, self.topology
        changes = self._reroutings(switch)
        config = SwitchConfig(
            spec, topology, switch, self.index, changes, self.qos_maps, marks=self._marks
        )
        first = self.index[topology.ports[switch.name][0]]
        part = self.part_of(switch.name)
        core = _have(lib.fabric_add_switch(self.core, part, first, config.struct, config.ports))
        self.switches[switch.name] = core
        if spec.fabric_kind.has_subnet_manager:
            assert self.subnet is not None, "its switches forward by LFTs"
            self._lid_routes.append(LidRoutes(core, spec, topology, switch, self.subnet))
        else:
            self._ip_routes[switch.name] = IpRoutes(core, spec, topology, switch, changes)
            if spec.vlans:
                add_vlans(core, spec, topology, switch)


def samples_of(
    time_ps: NDArray[np.int64],
    ports: Iterable[str],
    quantities: NDArray[np.int64],
    flow_bytes: NDArray[np.int64],
) -> Samples:
    """The samples with these quantities, as the core has them: (gauges, rows, ports)."""
    queue, held, tx, paused, wait = quantities
    for times in (paused, wait):
        times //= 1000
    return Samples(
        time_ns=time_ps // 1000,
        ports=tuple(ports),
        queue_bytes=queue,
        buffer_bytes=held,
        tx_bytes=tx,
        paused_ns=paused,
        credit_wait_ns=wait,
        flow_bytes=flow_bytes,
    )


def gone() -> UsageError:
    """The error for a fabric whose memory was freed at the end of `with`."""
    return UsageError("this fabric is gone; look at it before the end of its `with` block")


def _have(pointer: Any) -> Any:
    _have_memory(pointer != ffi.NULL)
    return pointer


def _have_memory(done: bool) -> None:
    if not done:
        raise FabricError("the fabric does not fit into this machine's memory; make it smaller")
