"""The settings of switches for the C core: translates those of a spec into a `struct switch_config`
and the `struct switch_port_config` of each port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu._core import ffi, lib
from emu.bindings.c_values import mac_of, mask
from emu.bindings.port_config import FRAME_BYTES, QosMaps, set_port
from emu.bindings.queue_disciplines import CoreDisciplines
from emu.fabric_kind import Forwarding, Framing
from emu.spec.classes import PRIORITIES
from emu.spec.headroom import headroom_of
from emu.spec.outages import Rerouting
from emu.spec.queue_discipline import QUEUES, disciplines_of
from emu.spec.rerouting import is_hinted
from emu.spec.scenario import Spec
from emu.spec.subnet import MANAGEMENT_VL, SLS, SubnetSpec
from emu.spec.switch import Scheduling, SwitchSpec, Watchdog
from topologies.graph import Port, Switch, Topology
from topologies.seeds import draw_seed, ecmp_seed

HOQ_UNIT_PS = 4_096_000
"""HOQLife is this times a power of two."""
HOQ_LONGEST = 19
"""A larger power means no limit."""

FORWARDINGS = {
    Forwarding.ADDRESS: lib.FORWARDING_IPV4,
    Forwarding.LID: lib.FORWARDING_LID,
}
_LOAD_BALANCES = {
    "ecmp": lib.LOAD_BALANCE_ECMP,
    "ecmp-qp": lib.LOAD_BALANCE_ECMP_QP,
    "pinned": lib.LOAD_BALANCE_PINNED,
    "flowlet": lib.LOAD_BALANCE_FLOWLET,
    "spray": lib.LOAD_BALANCE_SPRAY,
    "adaptive": lib.LOAD_BALANCE_ADAPTIVE,
}
_WATCHDOG_ACTIONS = {
    "drop": lib.WATCHDOG_DROP,
    "forward": lib.WATCHDOG_FORWARD,
    "alert": lib.WATCHDOG_ALERT,
}


class SwitchConfig:
    """A `struct switch_config`, the array of `struct switch_port_config`, and the memory that they
    point to."""

    def __init__(
        self,
        spec: Spec,
        topology: Topology,
        switch: Switch,
        index: Mapping[Port, int],
        changes: Sequence[Rerouting],
        qos_maps: QosMaps,
        *,
        marks: bool,
    ) -> None:
        """`index`: of every port. `changes` of routes are known in advance. Without `marks`, the
        kernel does what it can of the queue disciplines."""
        self._spec = spec
        self._topology = topology
        self._qos_maps = qos_maps
        ports = topology.ports[switch.name]
        self.struct = ffi.new("struct switch_config *", {"ports": len(ports)})
        self.ports = ffi.new("struct switch_port_config[]", len(ports))
        self._set_switch(switch, changes)
        self._disciplines = [
            CoreDisciplines(
                [own for own in disciplines_of(spec, port) if marks or not own.may_be_kernels],
                draw_seed(spec.seed, index[port]),
            )
            for port in ports
        ]
        for config, port, disciplines in zip(self.ports, ports, self._disciplines, strict=True):
            self._set_port(config, port)
            disciplines.give_to(config)

    def _set_switch(self, switch: Switch, changes: Sequence[Rerouting]) -> None:
        spec, config = self._spec, self.struct
        kind, settings = spec.fabric_kind, spec.switch(switch.name)
        routing = settings.routing
        config.forwarding = FORWARDINGS[kind.forwarding]
        config.latency_ps = settings.latency_ps
        config.cut_through = spec.cuts_through(switch.name)
        config.load_balance.kind = _LOAD_BALANCES[routing.kind]
        config.load_balance.seed = ecmp_seed(routing.seed_of(spec.seed), switch)
        config.load_balance.gap_ps = routing.gap_ps
        config.hints = is_hinted(spec, switch.name, changes)
        if kind.framing is Framing.ETHERNET:
            _set_arbiter(config.arbiter, settings.scheduling)
        else:
            _set_lane_arbiter(config.arbiter)
        if not kind.uses_credits:
            self._set_shared_buffer(switch, settings)
        if kind.has_subnet_manager:
            config.balanced_sls = mask(sl for sl in range(SLS) if routing.balances(sl))

    def _set_shared_buffer(self, switch: Switch, settings: SwitchSpec) -> None:
        """Sets the packet memory of ports without buffers of their own, and the PFC watchdog."""
        shared = self._spec.shared_pool(switch.name)
        assert shared > 0, "the spec's rules leave room beside the headroom"
        self.struct.buffer = (shared, settings.reserved_bytes)
        if settings.watchdog:
            _set_watchdog(self.struct.watchdog, settings.watchdog)

    def _set_port(self, config: Any, port: Port) -> None:
        spec, topology = self._spec, self._topology
        kind, settings, peer = spec.fabric_kind, spec.port(port), topology.peer[port]
        set_port(config.port, spec, topology, port)
        config.far_mac = mac_of(peer)
        config.queue_of = list(range(QUEUES))
        if kind.framing is Framing.ETHERNET:
            config.qos_map = self._qos_maps.of(settings.classes)
            config.queue_of[0:PRIORITIES] = [
                settings.classes.queue_of(priority) for priority in range(PRIORITIES)
            ]
        if kind.uses_credits:
            _set_lifetime(config.hoq, spec.subnet, to_host=peer.node in topology.host)
        elif settings.pfc:
            pfc, xoff = settings.pfc, settings.pfc.xoff
            config.pfc.priorities = mask(pfc.priorities)
            config.pfc.xoff = (xoff.size_bytes, xoff.alpha_1024)
            config.pfc.xon_below_xoff = pfc.xon_below_xoff
            config.pfc.headroom_bytes = headroom_of(spec, port)
        if kind.has_subnet_manager and peer.node in topology.host:
            _set_partitions(config.pkeys, spec.subnet, peer.node)


def _set_arbiter(config: Any, scheduling: Scheduling) -> None:
    config.strict = mask(scheduling.strict)
    quanta = [scheduling.quantum(queue, FRAME_BYTES) for queue in range(PRIORITIES)]
    config.quantum[0:PRIORITIES] = quanta


def _set_lane_arbiter(config: Any) -> None:
    """Without VL arbitration tables there is one data lane, and management goes first."""
    config.strict = 1 << MANAGEMENT_VL
    config.quantum = [FRAME_BYTES] * QUEUES


def _set_watchdog(config: Any, watchdog: Watchdog) -> None:
    config.action = _WATCHDOG_ACTIONS[watchdog.action]
    config.detection_ps = watchdog.detection_ps
    config.restoration_ps = watchdog.restoration_ps
    config.poll_ps = watchdog.poll_ps


def _set_lifetime(config: Any, subnet: SubnetSpec, *, to_host: bool) -> None:
    """Sets how long packets wait for credit."""
    power = subnet.leaf_head_of_queue_lifetime if to_host else subnet.head_of_queue_lifetime
    config.life_ps = 0 if power > HOQ_LONGEST else HOQ_UNIT_PS << power
    config.stall_count = subnet.vl_stall_count


def _set_partitions(config: Any, subnet: SubnetSpec, host: str) -> None:
    """Sets which partitions the port to a host lets through."""
    if subnet.part_enforce == "off":
        return
    keys = subnet.keys_of(host)
    config.inbound = subnet.part_enforce in ("in", "both")
    config.outbound = subnet.part_enforce in ("out", "both")
    config.keys[0 : len(keys)] = keys
    config.count = len(keys)
