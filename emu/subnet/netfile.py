"""A topology in the language of ibsim's net files (and of ibnetdiscover).

    switchguid=0x100001
    Switch 4 "leaf1"                the next GUID; a switch, its number of ports, its name
    [1] "h1"[1] s=7 e=2             port 1 leads to port 1 of h1, at 4 x 25.78 Gb/s (EDR)

A blank line ends a node. A cable is listed at both its ends. GUIDs are written
out, so that a node is recognised in what OpenSM says about it.
"""

from __future__ import annotations

from emu.ib_rates import LANE_BPS
from topologies.graph import Host, Port, Switch, Topology
from topologies.guids import host_guid, port_number, switch_guid

_GBIT = 10**9
_SPEEDS = (
    (200 * _GBIT, "HDR", "s=7 e=4"),  # the fastest that ibsim knows
    (100 * _GBIT, "EDR", "s=7 e=2"),
    (54 * _GBIT, "FDR", "s=7 e=1"),
    (32 * _GBIT, "QDR", "s=4"),
    (16 * _GBIT, "DDR", "s=2"),
    (0, "SDR", "s=1"),
)
"""Data rate of a 4x link in bits/s -> its speed, by LinkSpeedEnabled and LinkSpeedExtEnabled."""


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
    """The fastest speed that a link of this rate carries."""
    return next(options for least_bps, _, options in _SPEEDS if rate_bps >= least_bps)


def approximated(topology: Topology) -> dict[int, str]:
    """Rates in bits/s that a net file cannot tell, and what it has instead: `4x EDR`."""
    rates = dict.fromkeys(cable.rate_bps for cable in topology.cables)
    names = {rate: next(name for least, name, _ in _SPEEDS if rate >= least) for rate in rates}
    return {rate: f"4x {name}" for rate, name in names.items() if rate != 4 * LANE_BPS[name]}
