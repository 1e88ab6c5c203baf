"""The files of a host's NIC, each a path and its text.

class/infiniband/emu_0/               the device: GUIDs, names, `device/`
class/infiniband/emu_0/ports/1/       its port: state, addresses, P_Keys, counters
class/infiniband_verbs/uverbs0/       its door to user space
class/infiniband_mad/                 no door for management packets
class/misc/rdma_cm/                   the version of the connection manager
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address

from emu import __version__
from emu.lab.rdma_sysfs.counters import NOTHING, HostCounters, counter_files
from emu.lab.rdma_sysfs.rate import rate_text
from emu.spec.scenario import Spec
from emu.spec.subnet import DEFAULT_PKEY
from topologies.graph import Topology
from topologies.guids import host_guid, host_port_guid

DEVICE = "emu_0"
PORT = 1
VENDOR_ID, DEVICE_ID = 0, 0
"""Of no vendor, so that no program takes it for a NIC that it has special code for."""
LIFESPAN_MS = 200
"""How old the counters may be."""

_DEVICE = f"class/infiniband/{DEVICE}"
_PORT = f"{_DEVICE}/ports/{PORT}"
_UVERBS = "class/infiniband_verbs/uverbs0"
_UVERBS_ABI, _UVERBS_DRIVER_ABI, _UMAD_ABI, _RDMA_CM_ABI = 6, 1, 5, 4
"""Versions of the kernel's interfaces (include/uapi/rdma: ib_user_verbs.h, ib_user_mad.h,
rdma_user_cm.h); drivers count theirs from 1."""
_INFINIBAND_CLASS, _ETHERNET_CLASS = 0x020700, 0x020000
"""PCI classes of network controllers."""

_IS_SM = 1 << 1
_SL_MAP, _SYSTEM_IMAGE_GUID, _EXTENDED_SPEEDS = 1 << 6, 1 << 11, 1 << 14
_COMMUNICATION_MANAGEMENT = 1 << 16
_CLIENT_REREGISTRATION = 1 << 25
_IP_BASED_GIDS = 1 << 26
"""Bits of a port's CapabilityMask (IBTA vol 1, 14.2.5.6); the last is the kernel's, for RoCE."""


@dataclass(frozen=True)
class Nic:
    """What does not change about a host's NIC."""

    host: str
    ethernet: bool
    guid: int
    gid: IPv6Address
    """The only entry of the port's GID table."""
    rate_bps: int
    interface: str | None
    """The network interface at the same port; None on InfiniBand without IPoIB."""
    pkeys: tuple[int, ...]
    lid: int
    lmc: int
    runs_manager: bool
    """Whether a subnet manager runs on the host."""
    cpus: str
    """The CPUs of the machine that are online: `0-3,8`."""


@dataclass(frozen=True)
class PortState:
    """What changes about a NIC."""

    up: bool
    """Whether its cable works."""
    sm_lid: int = 0
    """The LID of the master subnet manager; 0 on Ethernet."""
    counters: HostCounters = NOTHING


def ethernet_nic(topology: Topology, host: str, cpus: str) -> Nic:
    """The NIC of a host of a RoCE fabric. Its GUID is its MAC address as EUI-64 (RFC 4291,
    appendix A)."""
    port = topology.ports[host][0]
    return Nic(
        host=host,
        ethernet=True,
        guid=eui64(port.mac),
        gid=IPv6Address(0xFFFF << 32 | int(topology.host[host].ip)),
        rate_bps=topology.cable[port].rate_bps,
        interface=port.interface,
        pkeys=(DEFAULT_PKEY,),
        lid=0,
        lmc=0,
        runs_manager=False,
        cpus=cpus,
    )


def infiniband_nic(
    spec: Spec,
    topology: Topology,
    host: str,
    cpus: str,
    *,
    lid: int,
    runs_manager: bool,
    interface: str | None,
) -> Nic:
    """The NIC of a host of an InfiniBand fabric. `lid`: what the subnet manager assigned.
    `interface`: of IPoIB."""
    one = topology.host[host]
    return Nic(
        host=host,
        ethernet=False,
        guid=host_guid(one),
        gid=IPv6Address(0xFE80 << 112 | host_port_guid(one)),
        rate_bps=topology.cable[topology.ports[host][0]].rate_bps,
        interface=interface,
        pkeys=spec.subnet.keys_of(host),
        lid=lid,
        lmc=spec.subnet.lmc,
        runs_manager=runs_manager,
        cpus=cpus,
    )


def eui64(mac: str) -> int:
    """The EUI-64 with the universal/local bit inverted, of a MAC address `02:00:0a:00:00:01`."""
    octets = bytes.fromhex(mac.replace(":", ""))
    return int.from_bytes((octets[0] ^ 2, *octets[1:3], 0xFF, 0xFE, *octets[3:]))


def fixed_files(nic: Nic) -> dict[str, str]:
    """Path -> text of the files that stay as they are."""
    lines = {
        **_of_device(nic),
        **_of_port(nic),
        "class/infiniband_verbs/abi_version": _UVERBS_ABI,
        f"{_UVERBS}/ibdev": DEVICE,
        f"{_UVERBS}/abi_version": _UVERBS_DRIVER_ABI,
        "class/infiniband_mad/abi_version": _UMAD_ABI,
        "class/misc/rdma_cm/abi_version": _RDMA_CM_ABI,
    }
    return {path: f"{line}\n" for path, line in lines.items()}


def links(nic: Nic) -> dict[str, str]:
    """Path -> target of the symbolic links. They are right in /sys."""
    targets = {f"{_UVERBS}/device": f"../../infiniband/{DEVICE}/device"}
    if nic.interface:
        targets[f"{_DEVICE}/device/net/{nic.interface}"] = f"../../../../net/{nic.interface}"
    return targets


def changing_files(nic: Nic, state: PortState) -> dict[str, str]:
    """Path -> text of the files that change."""
    down = "3: Disabled" if nic.ethernet else "2: Polling"
    files = {
        "state": f"{'4: ACTIVE' if state.up else '1: DOWN'}\n",
        "phys_state": f"{'5: LinkUp' if state.up else down}\n",
        "sm_lid": f"{state.sm_lid:#x}\n",
        **counter_files(state.counters),
    }
    return {f"{_PORT}/{path}": text for path, text in files.items()}


def _of_device(nic: Nic) -> Mapping[str, object]:
    files = {
        "node_type": "1: CA",
        "node_guid": _guid(nic.guid),
        "sys_image_guid": _guid(nic.guid),
        "node_desc": nic.host,
        "fw_ver": __version__,
        "hw_rev": 0,
        "hca_type": "emu",
        "board_id": "emu",
        "device/vendor": f"{VENDOR_ID:#06x}",
        "device/device": f"{DEVICE_ID:#06x}",
        "device/class": f"{_ETHERNET_CLASS if nic.ethernet else _INFINIBAND_CLASS:#08x}",
        "device/numa_node": -1,
        "device/local_cpulist": nic.cpus,
        "device/local_cpus": cpu_mask(nic.cpus),
    }
    return {f"{_DEVICE}/{path}": line for path, line in files.items()}


def _of_port(nic: Nic) -> Mapping[str, object]:
    files: dict[str, object] = {
        "rate": rate_text(nic.rate_bps, ethernet=nic.ethernet),
        "link_layer": "Ethernet" if nic.ethernet else "InfiniBand",
        "lid": f"{nic.lid:#x}",
        "lid_mask_count": nic.lmc,
        "sm_sl": 0,
        "cap_mask": f"{_capabilities(nic):#010x}",
        "gids/0": nic.gid.exploded,
        "gid_attrs/types/0": "RoCE v2" if nic.ethernet else "IB/RoCE v1",
        "hw_counters/lifespan": LIFESPAN_MS,
    }
    if nic.ethernet:
        files["gid_attrs/ndevs/0"] = nic.interface
    files |= {f"pkeys/{index}": f"{pkey:#06x}" for index, pkey in enumerate(nic.pkeys)}
    return {f"{_PORT}/{path}": line for path, line in files.items()}


def _capabilities(nic: Nic) -> int:
    if nic.ethernet:
        return _COMMUNICATION_MANAGEMENT | _IP_BASED_GIDS
    own = _SL_MAP | _SYSTEM_IMAGE_GUID | _EXTENDED_SPEEDS
    own |= _COMMUNICATION_MANAGEMENT | _CLIENT_REREGISTRATION
    return own | (_IS_SM if nic.runs_manager else 0)


def _guid(guid: int) -> str:
    return guid.to_bytes(8).hex(":", 2)


def cpu_mask(cpus: str) -> str:
    """CPUs as the kernel's bitmap, in groups of 32 bits: `00000001,0000000f` for `0-3,32`."""
    mask = 0
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        mask |= sum(1 << cpu for cpu in range(int(first), int(last or first) + 1))
    digits = f"{mask:x}"
    if len(digits) > 8:
        digits = digits.zfill(-(-len(digits) // 8) * 8)
    groups = [digits[max(0, end - 8) : end] for end in range(len(digits), 0, -8)]
    return ",".join(reversed(groups))
