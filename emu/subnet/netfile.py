"""A topology in the language of ibsim's net files (and of ibnetdiscover).

    switchguid=0x100001
    Switch 4 "leaf1"                the next GUID; a switch, its number of ports, its name
    [1] "h1"[1] s=7 e=2             port 1 leads to port 1 of h1, at 4 x 25.78 Gb/s (EDR)

A blank line ends a node. A cable is listed at both its ends. The GUIDs are given,
so that OpenSM's files can be matched to nodes.
"""

from __future__ import annotations

from emu.ib_rates import LANE_BPS, write_ib_rate
from topologies.graph import Host, Port, Switch, Topology
from topologies.guids import host_guid, port_number, switch_guid

_GBIT = 10**9
_SPEEDS = {
    "SDR": "s=1",
    "DDR": "s=2",
    "QDR": "s=4",
    "FDR": "s=7 e=1",
    "EDR": "s=7 e=2",
    "HDR": "s=7 e=4",
}
"""Generation -> LinkSpeedEnabled, LinkSpeedExtEnabled."""
_INSTEAD = {"FDR10": "QDR", "NDR": "HDR", "XDR": "HDR"}
"""Rates that ibsim does not know -> the fastest rate that it knows."""
_WIDTHS = {"1": "w=1 ", "2": "w=16 ", "4": "", "8": "w=4 ", "12": "w=8 "}
"""Lanes of a link -> LinkWidthEnabled, if it differs from ibsim's default."""
_AT_LEAST = (
    (200 * _GBIT, "HDR"),
    (100 * _GBIT, "EDR"),
    (54 * _GBIT, "FDR"),
    (32 * _GBIT, "QDR"),
    (16 * _GBIT, "DDR"),
    (0, "SDR"),
)
"""Data rate in bits/s -> the generation of the 4x link with that rate or the next lower."""


def net_file(topology: Topology) -> str:
    """The whole fabric, switches first, in order of their indices."""
    nodes = [_switch(topology, switch) for switch in topology.switches]
    nodes += [_host(topology, host) for host in topology.hosts]
    return "\n\n".join(nodes) + "\n"


def _switch(topology: Topology, switch: Switch) -> str:
    ports = topology.ports[switch.name]
    most = max((port.number for port in ports), default=1)
    lines = [f"switchguid={switch_guid(switch):#x}", f'Switch {most} "{switch.name}"']
    return "\n".join(lines + [_link(topology, port) for port in ports])


def _host(topology: Topology, host: Host) -> str:
    lines = [f"hcaguids={host_guid(host):#x}", f'Hca 1 "{host.name}"']
    return "\n".join(lines + [_link(topology, port) for port in topology.ports[host.name]])


def _link(topology: Topology, port: Port) -> str:
    far = topology.peer[port]
    speed = _speed(topology.cable[port].rate_bps)
    return f'[{port_number(topology, port)}] "{far.node}"[{port_number(topology, far)}] {speed}'


def _speed(rate_bps: int) -> str:
    width, generation = _width_and_speed(rate_bps)
    return _WIDTHS[width] + _SPEEDS[generation]


def _width_and_speed(rate_bps: int) -> tuple[str, str]:
    """The lanes and generation of the link with this rate. If there is none, of the fastest 4x link
    with a lower rate."""
    name = write_ib_rate(rate_bps)
    if name is None:
        name = "4x " + next(speed for nominal, speed in _AT_LEAST if rate_bps >= nominal)
    width, generation = name.split("x ")
    return width, _INSTEAD.get(generation, generation)


def approximated(topology: Topology) -> dict[int, str]:
    """Rates in bits/s that a net file cannot express, and the rate it has instead: `4x EDR`."""
    written = {cable.rate_bps: _width_and_speed(cable.rate_bps) for cable in topology.cables}
    return {
        rate_bps: f"{width}x {generation}"
        for rate_bps, (width, generation) in written.items()
        if rate_bps != int(width) * LANE_BPS[generation]
    }
