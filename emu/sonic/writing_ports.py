"""An export's tables of the switch itself, of its ports and of its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, islice

from emu.bgp.numbering import autonomous_systems
from emu.sonic.fabric import SERVER, USUAL_TYPES
from emu.sonic.rows import Tables, add
from emu.spec.device import Device
from emu.spec.host import MTUS
from emu.spec.scenario import Spec
from emu.units import BPS_PER_MBPS, PS_PER_METRE, write_rate, write_time
from topologies.graph import Port, Topology

ROCE_HEADERS = 20 + 8 + 12 + 16 + 4
"""IPv4, UDP, BTH, RETH and ICRC, which an IP packet has beside its payload."""
_MTU = 9100
"""What SONiC ships."""
_LANES = 4
"""SONiC counts ports by lanes, of which most have four: Ethernet0, Ethernet4, ..."""
_TYPES_OF_TIERS = {"tier1": "ToRRouter", "tier2": "LeafRouter", "tier3": "SpineRouter"}
_NIC = "eth0"

Note = Callable[[str], None]


class Devices:
    """The names of the devices and ports of a spec."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._topology = spec.topology.build()
        self._has_names = any(device.file for device in spec.devices.values())

    def of(self, node: str) -> Device:
        return self._spec.devices.get(node) or Device()

    def name(self, node: str) -> str:
        return self.of(node).name or node

    def type(self, node: str) -> str:
        """SONiC's type of a device: as given, or by its role or tier. Empty: it is not known."""
        given = self.of(node).type
        return given if given is not None else usual_type(self._topology, node)

    def port(self, port: Port) -> str:
        """The device's name of a port. Empty: it is not known, since the spec has the names of
        other devices' ports."""
        given = self.of(port.node).ports
        own = given.get(self.far(port))
        if own is not None:
            return own
        if self._has_names and not self.of(port.node).file:
            return ""
        if port.node in self._topology.host:
            return _NIC
        unnamed = [p for p in self._topology.ports[port.node] if self.far(p) not in given]
        names = (f"Ethernet{_LANES * number}" for number in count())
        free = (name for name in names if name not in given.values())
        return next(islice(free, unnamed.index(port), None))

    def far(self, port: Port) -> str:
        """emu's name of a port on its switch: the neighbour."""
        return self._topology.port_name[port].partition(":")[2]


def write_ports(spec: Spec, switch: str, tables: Tables, note: Note) -> None:
    """Writes DEVICE_METADATA, PORT, CABLE_LENGTH, DEVICE_NEIGHBOR and DEVICE_NEIGHBOR_METADATA."""
    devices, topology = Devices(spec), spec.topology.build()
    add(tables, "DEVICE_METADATA", "localhost", _metadata(spec, switch, devices))
    for port in topology.ports[switch]:
        own, cable, peer = devices.port(port), topology.cable[port], topology.peer[port]
        fields = {"speed": _speed(cable.rate_bps, own, note), "mtu": str(_mtu(spec))}
        add(tables, "PORT", own, {**fields, "admin_status": "up"})
        add(tables, "CABLE_LENGTH", "AZURE", {own: _length(cable.delay_ps, own, note)})
        far = devices.name(peer.node)
        add(tables, "DEVICE_NEIGHBOR", own, _known(name=far, port=devices.port(peer)))
        about = _known(type=devices.type(peer.node), hwsku=devices.of(peer.node).model)
        add(tables, "DEVICE_NEIGHBOR_METADATA", far, about)


def usual_type(topology: Topology, node: str) -> str:
    """SONiC's type of a node by its role, else by its tier; that of a host is Server. Empty for
    the role that an import gives to switches of which no type is known."""
    if node in topology.host:
        return SERVER
    tier, role = topology.roles[node][0], topology.roles[node][-1]
    return USUAL_TYPES.get(role, _TYPES_OF_TIERS.get(tier, "SpineRouter"))


def _known(**fields: str | None) -> dict[str, str]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value}


def _metadata(spec: Spec, switch: str, devices: Devices) -> dict[str, str]:
    fields = _known(
        hostname=devices.name(switch),
        type=devices.type(switch),
        hwsku=devices.of(switch).model,
        buffer_model="traditional",
    )
    if spec.has_bgp:
        given = spec.switch(switch).routing.bgp.asn
        fields["bgp_asn"] = str(given or autonomous_systems(spec.topology.build())[switch])
    return fields


def _speed(rate_bps: int, port: str, note: Note) -> str:
    mbps = -(-rate_bps // BPS_PER_MBPS)
    if mbps * BPS_PER_MBPS != rate_bps:
        note(f"PORT|{port}|speed: {write_rate(rate_bps)} is written as {mbps} Mbit/s")
    return str(mbps)


def _mtu(spec: Spec) -> int:
    """SONiC's usual MTU, or a smaller one for NICs that send smaller packets."""
    return _MTU if spec.largest_mtu == max(MTUS) else spec.largest_mtu + ROCE_HEADERS


def _length(delay_ps: int, port: str, note: Note) -> str:
    metres = -(-delay_ps // PS_PER_METRE)
    if metres * PS_PER_METRE != delay_ps:
        note(
            f"CABLE_LENGTH|AZURE|{port}: a delay of {write_time(delay_ps)} is written as {metres}m"
        )
    return f"{metres}m"
