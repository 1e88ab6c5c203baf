"""The folders `counters` and `hw_counters` of a port.

counters     the performance management attributes of InfiniBand (IBTA vol 1, 16.1.3), also on
             Ethernet, where mlx5 counts RDMA alone; data in words of 4 bytes
hw_counters  those of the NIC, as mlx5 has them

The kernel's files of errors that cannot happen here are 0. No counter sticks at its width, as the
hardware's do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from emu._core import lib
from emu.fabric_kind import Framing
from emu.measure.counter_table import NIC, PORT
from emu.measure.counters import XMIT_WAIT
from emu.measure.raw_counters import RawCounters

_WORD = 4
_PMA = {
    "symbol_error": "SymbolErrorCounter",
    "link_error_recovery": None,
    "link_downed": "LinkDownedCounter",
    "port_rcv_errors": "PortRcvErrors",
    "port_rcv_remote_physical_errors": None,
    "port_rcv_switch_relay_errors": "PortRcvSwitchRelayErrors",
    "port_xmit_discards": "PortXmitDiscards",
    "port_xmit_constraint_errors": "PortXmitConstraintErrors",
    "port_rcv_constraint_errors": "PortRcvConstraintErrors",
    "local_link_integrity_errors": None,
    "excessive_buffer_overrun_errors": None,
    "VL15_dropped": "VL15Dropped",
    "port_xmit_data": "PortXmitData",
    "port_rcv_data": "PortRcvData",
    "port_xmit_packets": "PortXmitPkts",
    "port_rcv_packets": "PortRcvPkts",
    "port_xmit_wait": XMIT_WAIT,
    "unicast_xmit_packets": "PortXmitPkts",
    "unicast_rcv_packets": "PortRcvPkts",
    "multicast_xmit_packets": None,
    "multicast_rcv_packets": None,
}
"""The kernel's file -> the counter of the PMA; None: it cannot happen here."""
_TERMS = {
    name: PORT.terms[Framing.INFINIBAND][name]
    for name in dict.fromkeys(filter(None, _PMA.values()))
    if PORT.terms[Framing.INFINIBAND][name]
}
"""The PMA's counter -> those of the core that it adds up."""
_HW = tuple(row.name for row in NIC.rows if row.source == lib.LINUX_HW_COUNTERS)


class HostCounters(NamedTuple):
    """What a host's NIC and its port have counted."""

    port: Mapping[str, int]
    """Under the PMA's names; a missing counter is 0."""
    nic: Mapping[str, int]
    """Under the names of `hw_counters`; a missing counter is 0."""


NOTHING = HostCounters({}, {})


def pma_counters(port: RawCounters, framing: Framing) -> dict[str, int]:
    """The counters of one port, from the core's, under the PMA's names.

    `emu.measure.counters` has them for many ports at once; this is faster for one.
    """
    named = {
        name: sum(sum(port[row.name]) for row in terms) // terms[0].per_unit
        for name, terms in _TERMS.items()
    }
    left_out = lib.VCRC_BYTES if framing is Framing.INFINIBAND else 0
    for name, way in (("PortXmitData", "tx"), ("PortRcvData", "rx")):
        octets, packets = sum(port[f"{way}_bytes"]), sum(port[f"{way}_packets"])
        named[name] = (octets - left_out * packets) // _WORD
    return named


def hw_counters(row: Mapping[str, list[int]]) -> dict[str, int]:
    """The counters of one NIC, from the core's, under the names of `hw_counters`."""
    return {name: row[name][0] for name in _HW}


def counter_files(counters: HostCounters) -> dict[str, str]:
    """Path in the port's folder -> text."""
    pma = {file: counters.port.get(name, 0) if name else 0 for file, name in _PMA.items()}
    files = {f"counters/{file}": value for file, value in pma.items()}
    files |= {f"hw_counters/{name}": counters.nic.get(name, 0) for name in _HW}
    return {path: f"{value}\n" for path, value in files.items()}
