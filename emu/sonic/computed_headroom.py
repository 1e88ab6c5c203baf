"""The headroom of ports whose profile the switch would make itself: as emu computes it."""

from __future__ import annotations

from dataclasses import replace

from emu.sonic.fabric import Fabric, Node
from emu.sonic.pfc_profiles import PortPfc
from emu.sonic.switch_settings import SwitchSettings
from emu.spec.headroom import headroom_bytes, response_quanta
from emu.spec.host import Nic
from emu.units import PS_PER_METRE, PS_PER_S


def with_headroom(settings: SwitchSettings, fabric: Fabric, node: Node, mtu: int) -> SwitchSettings:
    """The settings of a switch with a headroom at each port with PFC. `mtu`: of the NICs."""
    ports = dict(settings.ports)
    for name, port in node.ports.items():
        pfc = ports[port].pfc
        if pfc is not None and pfc.headroom_bytes is None:
            ports[port] = replace(ports[port], pfc=_computed(pfc, fabric, node.name, name, mtu))
    return replace(settings, ports=ports)


def _computed(pfc: PortPfc, fabric: Fabric, switch: str, port: str, mtu: int) -> PortPfc:
    far, _, number = port.partition("#")
    cables = [own for own in fabric.cables if {own.a, own.b} == {switch, far}]
    cable = cables[int(number or 1) - 1]
    response_ps = -(-response_quanta(cable.rate_bps) * 512 * PS_PER_S // cable.rate_bps)
    headroom = headroom_bytes(
        rate_bps=cable.rate_bps,
        delay_ps=cable.metres * PS_PER_METRE,
        response_ps=response_ps,
        frame_bytes=Nic(mtu=mtu).largest_frame_bytes,
    )
    return replace(pfc, headroom_bytes=headroom)
