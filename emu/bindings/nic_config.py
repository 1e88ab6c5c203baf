"""The configuration of NICs and queue pairs: translates settings of a spec for the C core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emu._core import ffi, lib
from emu.bindings.c_values import mac_of
from emu.bindings.congestion_control import set_congestion_control
from emu.bindings.fabric import Fabric
from emu.bindings.port_config import set_port
from emu.bindings.settings import copy_settings
from emu.spec.host import Nic
from emu.spec.host_path import HostPath
from emu.spec.recovery import RECOVERIES, Recovery
from emu.subnet.subnet import Subnet
from topologies.graph import Host
from topologies.guids import host_port_guid

MIN_RNR_TIMER = 1
"""The code of the shortest waiting time, 10 us."""
_RECOVERY = {name: ffi.new("char[]", name.encode()) for name in RECOVERIES}
"""C strings, which live as long as this module."""


def address_of(fabric: Fabric, subnet: Subnet | None, host: str) -> int:
    """The host's IPv4 address, or its LID."""
    if subnet is not None:
        return subnet.lids[host]
    return int(fabric.topology.host[host].ip)


def nic_config(
    fabric: Fabric, subnet: Subnet | None, host: Host, *, max_qps: int, max_regions: int
) -> Any:
    """The `struct nic_config` of the host's NIC."""
    topology, spec = fabric.topology, fabric.spec
    port = topology.ports[host.name][0]
    config = ffi.new("struct nic_config *")
    copy_settings(config, spec.host(host.name).nic)
    set_port(config.port, spec, topology, port)
    config.address = address_of(fabric, subnet, host.name)
    config.gateway_mac = mac_of(topology.peer[port])
    config.qos_map = fabric.qos_maps.of(spec.classes_of(host.name))
    vid = spec.host(host.name).nic.vlan
    config.tagged, config.vid = vid is not None, vid or 0
    config.guid = host_port_guid(host)
    config.lmc = subnet.lmc if subnet else 0
    _set_path(config.path, spec.host(host.name).path)
    config.max_qps = max_qps
    config.max_regions = max_regions
    return config


def _set_path(config: Any, path: HostPath | None) -> None:
    if path is None:
        return
    copy_settings(config, path)
    config.rate_bps = path.rate_bps
    if not path.is_staged:
        config.copy_rate_bps = 0


def qp_config(
    settings: Nic,
    peer: Nic,
    *,
    psn: int,
    dscp: int,
    priority: int,
    path_packets: Callable[[], int],
) -> Any:
    """The `struct qp_config` of a queue pair, from the settings of both NICs.

    `dscp` and `priority` are those of its data.
    `path_packets` returns how many packets its path holds.
    """
    config = ffi.new("struct qp_config *")
    copy_settings(config, settings)
    config.psn = psn
    config.dscp = dscp
    config.ack_dscp = dscp if settings.ack_dscp is None else settings.ack_dscp
    answered = settings.control(peer.cc)
    config.cnp_dscp = answered.dscp_of_cnps(settings.cnp_dscp, dscp)
    cnp_priority = None if settings.vlan is None else answered.pcp_of_cnps
    config.cnp_prioritised, config.cnp_priority = cnp_priority is not None, cnp_priority or 0
    config.mtu = min(settings.mtu, peer.mtu)
    config.not_ect = not settings.ecn
    config.rnr_retry = lib.RNR_RETRY_FOR_EVER
    config.min_rnr_timer = MIN_RNR_TIMER
    set_congestion_control(config, settings, peer, priority, path_packets)
    return config


def set_recovery(config: Any, recovery: Recovery, path_packets: Callable[[], int]) -> None:
    """Sets the loss recovery of a queue pair. Both ends need the same scheme.

    `path_packets` returns how many packets the path holds, for schemes that limit the window.
    """
    config.recovery = _RECOVERY[recovery.name]
    if recovery.limits_window and not config.window:
        config.window = path_packets()
        config.ack_every = 1  # with such a small window an ACK cannot wait for several packets
