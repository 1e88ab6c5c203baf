"""The settings of ports for the C core: translates those of a spec into a `struct port_config`.

Framing and flow control are two choices of the kind of fabric, each with its own settings.
"""

from __future__ import annotations

from typing import Any

from emu._core import ffi, lib
from emu.bindings.c_values import mac_of, mask
from emu.fabric_kind import FabricKind, Framing
from emu.spec.classes import DSCPS, PRIORITIES, Classes
from emu.spec.lanes import credits_of, lanes_of_link
from emu.spec.scenario import Spec
from emu.spec.subnet import VlArbitration
from topologies.graph import Port, Topology

FRAME_BYTES = 4352
"""The largest frame on a link: 4096 bytes of payload and every header."""

FRAMINGS = {
    Framing.ETHERNET: lib.FRAMING_ETHERNET,
    Framing.INFINIBAND: lib.FRAMING_INFINIBAND,
}


def set_port(config: Any, spec: Spec, topology: Topology, port: Port) -> None:
    """Fills in the `struct port_config` of a switch's or host's port."""
    config.framing = FRAMINGS[spec.fabric_kind.framing]
    config.mac = mac_of(port)
    if spec.fabric_kind.uses_credits:
        _set_credits(config, spec, topology, port)
    else:
        _set_pauses(config, spec, topology, port)
    if spec.fabric_kind.has_subnet_manager:
        vls = lanes_of_link(spec, topology, port)
        config.sl2vl = spec.subnet.vl_of_sl(vls)
        if vls > 1:
            _set_arbitration(config.vlarb, spec.subnet.vl_arbitration)


def cable_end_config(kind: FabricKind) -> Any:
    """The `struct port_config` of a cable end whose node is in another process. The flow control of
    the end is in that process, too."""
    return ffi.new("struct port_config *", {"framing": FRAMINGS[kind.framing]})


def _set_credits(config: Any, spec: Spec, topology: Topology, port: Port) -> None:
    vls, credits = lanes_of_link(spec, topology, port), credits_of(spec, topology, port)
    config.flow_control = lib.FLOW_CONTROL_CREDITS
    config.credit.vls = vls
    config.credit.width = topology.cable[port].width
    config.credit.buffer_bytes = [credits.buffer_of(vl) for vl in range(vls)]


def _set_pauses(config: Any, spec: Spec, topology: Topology, port: Port) -> None:
    """Sets which pauses a port obeys and sends. A host's port has the PFC settings of its leaf."""
    if port.node in topology.switch:
        settings = spec.port(port)
        response_ps = settings.pause_response_ps
    else:
        settings = spec.port(topology.peer[port])
        response_ps = spec.host(port.node).nic.pause_response_ps
    config.pause.response_ps = response_ps or 0
    if settings.pfc is None or not settings.pfc.priorities:
        config.flow_control = lib.FLOW_CONTROL_NONE
    elif settings.pfc.frames == "pause":
        config.flow_control = lib.FLOW_CONTROL_PAUSE
    else:
        config.flow_control = lib.FLOW_CONTROL_PFC
        config.pause.priorities = mask(settings.pfc.priorities)


def _set_arbitration(tables: Any, arbitration: VlArbitration) -> None:
    for table, weights in ((tables.high, arbitration.high), (tables.low, arbitration.low)):
        table.entries[0 : len(weights)] = list(weights.items())  # pairs of VL and weight
        table.count = len(weights)
    tables.limit = arbitration.high_limit


class QosMaps:
    """The `struct qos_map` of traffic classes, made once for all ports and NICs that share them."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Classes, Any]] = {}

    def of(self, classes: Classes) -> Any:
        if id(classes) not in self._made:
            self._made[id(classes)] = (classes, _qos_map(classes))
        return self._made[id(classes)][1][0]


def _qos_map(classes: Classes) -> Any:
    return ffi.new(
        "struct qos_map *",
        {
            "trusts_pcp": classes.trust == "pcp",
            "default_priority": classes.untagged_priority,
            "of_dscp": [classes.priority_of_dscp(dscp) for dscp in range(DSCPS)],
            "of_pcp": [classes.priority_of_pcp(pcp) for pcp in range(PRIORITIES)],
        },
    )
