"""The core's counters under the names that operators already graph.

    Ethernet     ethtool's, as mlx5 has them: rx_prio3_pause, tx_prio3_bytes, ...
    InfiniBand   the PMA's: PortXmitData, PortXmitWait, ...

PortXmitData and PortRcvData count words of 4 bytes from the LRH to the ICRC, without
flow-control packets, as the standard has it. A damaged packet is one symbol error.
PortXmitWait's tick is up to the device; here it is 1 ns of emulated time. Pause
durations are microseconds, like mlx5's. Pauses of 802.3x stop all priorities at once, and
are counted once: rx_global_pause, rx_global_pause_duration, and none by priority.
A frame that is too short for its headers and CRCs, or longer than any may be, is refused at the
port that receives it, and counted in rx_undersize_pkts and rx_oversize_pkts (Ethernet) or
PortMalformedPacketErrors (perfquery's PortRcvErrorDetails, which also has packets on a lane that
the port lacks).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from emu.measure.raw_counters import CounterTable, RawCounters
from emu.measure.recording import Counters

Cells = NDArray[np.int64]
"""(ports, classes), or (ports, 1)"""
_ReadCounter = Callable[[str], Cells]
_Shown = NDArray[np.bool_] | bool
_Group = dict[str, tuple[Cells, _Shown]]
"""Counters that stand together, class by class: name, in which `{}` is the class -> cells, and
whether they are shown, as far as that differs."""

XMIT_WAIT = "PortXmitWait"
_PS_PER_US = 1_000_000
_PS_PER_NS = 1_000
_WORD = 4
_VCRC_BYTES = 2

_PER_PRIORITY = {
    "rx_packets": "rx_prio{}_packets",
    "rx_bytes": "rx_prio{}_bytes",
    "tx_packets": "tx_prio{}_packets",
    "tx_bytes": "tx_prio{}_bytes",
    "rx_pause": "rx_prio{}_pause",
    "tx_pause": "tx_prio{}_pause",
    "rx_pause_transition": "rx_prio{}_pause_transition",
    "rx_buf_discard": "rx_prio{}_buf_discard",
    "tx_queue_discard": "tx_prio{}_discards",
    "ecn_marked": "tx_prio{}_ecn_marked",
    "headroom_peak_bytes": "rx_prio{}_headroom_peak_bytes",
    "dropped": "prio{}_dropped_packets",
}
_WATCHDOG = {
    "watchdog_tx_packets": "prio{}_PFC_WD_QUEUE_STATS_TX_PACKETS",
    "watchdog_rx_packets": "prio{}_PFC_WD_QUEUE_STATS_RX_PACKETS",
    "watchdog_tx_dropped": "prio{}_PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS",
    "watchdog_rx_dropped": "prio{}_PFC_WD_QUEUE_STATS_RX_DROPPED_PACKETS",
}
"""SONiC's, of all storms; with _LAST of the last one, which may still last."""
_PLAIN = (
    "rx_pause_frames",
    "tx_pause_frames",
    "rx_global_pause",
    "tx_global_pause",
    "rx_mac_control_unknown",
    "rx_crc_errors",
    "no_route",
    "ttl_expired",
    "not_ip",
    "transit_lost",
    "transit_overflow",
    "transit_unknown",
    "queue_peak_bytes",
    "link_downed",
    "link_down_discard",
)
_PAUSED = ("rx_pause_transition", "rx_pause_duration", "tx_pause_duration")
"""What pause frames did; the core counts it by priority, whichever kind they are."""
_RCV_ERRORS = ("rx_crc_errors", "rx_malformed", "rx_oversize", "rx_flow_control_errors")
"""What the PMA calls a received packet with an error: damaged, malformed, or a malformed link
packet."""
_DURATIONS = {
    "rx_pause_duration": "rx_prio{}_pause_duration",
    "tx_pause_duration": "tx_prio{}_pause_duration",
}
"""Like those per priority, in microseconds."""
PRIORITIES = range(8)
_SAI = {
    "SAI_PORT_STAT_PFC_{}_RX_PKTS": "rx_pause",
    "SAI_PORT_STAT_PFC_{}_TX_PKTS": "tx_pause",
    "SAI_PORT_STAT_PFC_{}_RX_PAUSE_DURATION_US": "rx_pause_duration",
    "SAI_PORT_STAT_PFC_{}_ON2OFF_RX_PKTS": "rx_pause_transition",
}
"""SAI's names of the pause counters, and ours."""
_CLASSES = 16
"""As many as any fabric has: InfiniBand's lanes."""

DISCARDS = (
    "rx_buf_discard",
    "tx_queue_discard",
    "rx_malformed",
    "rx_oversize",
    "rx_credit_violations",
    "corrupt",
    "watchdog_rx_dropped",
    "watchdog_tx_dropped",
    "link_down_discard",
    "hoq_discard",
    "vl15_dropped",
    "rcv_constraint_errors",
    "xmit_constraint_errors",
    "no_route",
    "no_lane",
    "ttl_expired",
    "not_ip",
)
"""Every reason for which a switch's port drops a packet, on either fabric. Not rx_crc_errors: a
cut-through switch forwards a damaged packet; one that stores it first drops it (corrupt)."""

DROPPED = "dropped_packets"
"""An InfiniBand port's counter of all packets that ended there, whatever the reason. RoCE's ports
have one for each priority, prio3_dropped_packets."""


def ethernet_counters(
    ports: Mapping[str, RawCounters], *, whole: bool = False
) -> dict[str, Counters]:
    """RoCE ports' counters by port; those of a priority that nothing used are left out unless
    `whole`, and what global pauses did where there were none."""
    return _named(ports, partial(_ethernet, whole=whole))


def infiniband_counters(
    ports: Mapping[str, RawCounters], *, vls: int | Sequence[int] = 0
) -> dict[str, Counters]:
    """InfiniBand ports' counters by port, all VLs together, and those of each VL that was used or
    is one of the first `vls`, of all ports or of each."""
    return _named(ports, partial(_infiniband, vls=np.reshape(vls, (-1, 1))))


def lost_in_transit(ports: CounterTable) -> int:
    """Packets of ports that the emulator lost: Open vSwitch did not give them back, or had too
    many already to be given another."""
    return ports.total("transit_lost") + ports.total("transit_overflow")


def counter_names(fabric: str) -> frozenset[str]:
    """All that a port's counters may be called on this fabric, with those of classes and lanes
    that a run leaves out because nothing used them."""
    groups = _infiniband if fabric == "ib" else _ethernet
    return frozenset(name for group in groups(_nothing) for name in _names(group))


def _nothing(name: str) -> Cells:
    """A counter of one port that has counted nothing."""
    return np.zeros((1, _CLASSES), np.int64)


def _named(
    ports: Mapping[str, RawCounters], groups_of: Callable[[_ReadCounter], Sequence[_Group]]
) -> dict[str, Counters]:
    """What ports show of the groups of their counters."""
    if not ports:
        return {}
    table = CounterTable.of(ports)
    groups = groups_of(table.counter)
    names = [name for group in groups for name in _names(group)]
    values, shown = map(np.hstack, zip(*map(_side_by_side, groups), strict=True))
    return dict(zip(table, _rows(names, values, shown), strict=True))


def _rows(names: Sequence[str], values: Cells, shown: NDArray[np.bool_]) -> list[Counters]:
    """Each port's; those that show the same names are done together."""
    alike: dict[bytes, list[int]] = {}
    for row, own in enumerate(shown):
        alike.setdefault(own.tobytes(), []).append(row)
    counters: list[Counters] = [{} for _ in shown]
    for rows in alike.values():
        own = shown[rows[0]]
        own_names = list(compress(names, own))
        for row, cells in zip(rows, values[np.ix_(rows, own)].tolist(), strict=True):
            counters[row] = dict(zip(own_names, cells, strict=True))
    return counters


def _names(group: _Group) -> list[str]:
    cells, _ = next(iter(group.values()))
    return [name.format(number) for number in range(cells.shape[1]) for name in group]


def _side_by_side(group: _Group) -> tuple[Cells, NDArray[np.bool_]]:
    """The cells of a group, and whether they are shown: (ports, names)."""
    cells = np.stack([cells for cells, _ in group.values()], axis=2)
    shown = [np.broadcast_to(shown, cells.shape[:2]) for _, shown in group.values()]
    rows = len(cells)
    return cells.reshape(rows, -1), np.stack(shown, axis=2).reshape(rows, -1)


def _ethernet(read: _ReadCounter, *, whole: bool = False) -> list[_Group]:
    of_link = {"rx": _is_paused_as_one(read), "tx": _single(read, "tx_global_pause") > 0}
    is_global = {name: of_link[name[:2]] for name in _PAUSED}
    plain = {name: _single(read, name) for name in _PLAIN} | _common(read)
    plain["rx_undersize_pkts"] = _single(read, "rx_malformed")
    plain["rx_oversize_pkts"] = _single(read, "rx_oversize")
    return [
        _of_priorities(read, is_global, whole) | _of_the_watchdog(read),
        _always(plain) | _of_global_pauses(read, is_global),
    ]


def _of_priorities(
    read: _ReadCounter, is_global: Mapping[str, NDArray[np.bool_]], whole: bool
) -> _Group:
    """Of each priority, and the pause counters once more, by SAI's names; none of those where there
    was no pause."""
    own = {name: read(name)[:, PRIORITIES] for name in (*_PER_PRIORITY, *_DURATIONS)}
    own |= {name: own[name] // _PS_PER_US for name in _DURATIONS}
    own |= {name: np.where(is_global[name], 0, own[name]) for name in _PAUSED}
    used = np.any([*own.values()], axis=0)
    paused = np.any([own[name] for name in _SAI.values()], axis=0)
    names = _PER_PRIORITY | _DURATIONS
    return {new: (own[name], used | whole) for name, new in names.items()} | {
        new: (own[name], paused) for new, name in _SAI.items()
    }


def _of_the_watchdog(read: _ReadCounter) -> _Group:
    """Of each priority for which it has found a storm. PFC_WD_STATUS: 1 is `stormed`, 0
    `operational`."""
    detected, restored = (
        read(f"watchdog_{what}")[:, PRIORITIES] for what in ("detected", "restored")
    )
    counters = {
        "prio{}_PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": detected,
        "prio{}_PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED": restored,
        "prio{}_PFC_WD_STATUS": detected - restored,
    }
    for old, new in _WATCHDOG.items():
        total, before = (read(name)[:, PRIORITIES] for name in (old, f"{old}_before"))
        counters |= {new: total, f"{new}_LAST": total - before}
    return {name: (cells, detected != 0) for name, cells in counters.items()}


def _is_paused_as_one(read: _ReadCounter) -> NDArray[np.bool_]:
    """Whether ports obeyed 802.3x, so that their priorities were paused together; a pause frame
    alone does not tell, for a port with PFC does not obey it."""
    return _single(read, "paused") < _sum(read, "rx_pause_duration")


def _of_global_pauses(read: _ReadCounter, is_global: Mapping[str, NDArray[np.bool_]]) -> _Group:
    """A port that is paused has all its priorities paused; one that pauses does so for the one
    that it pauses longest."""
    counters: _Group = {}
    for name, shown in is_global.items():
        way, _, what = name.partition("_")
        most = read(name).max(axis=1, keepdims=True)
        counters[f"{way}_global_{what}"] = most // _PS_PER_US if name in _DURATIONS else most, shown
    return counters


def _infiniband(read: _ReadCounter, *, vls: NDArray[np.int64] | int = 0) -> list[_Group]:
    of_port = {
        "PortXmitData": _words(_sum(read, "tx_bytes"), _sum(read, "tx_packets")),
        "PortRcvData": _words(_sum(read, "rx_bytes"), _sum(read, "rx_packets")),
        "PortXmitPkts": _sum(read, "tx_packets"),
        "PortRcvPkts": _sum(read, "rx_packets"),
        XMIT_WAIT: _sum(read, "xmit_wait") // _PS_PER_NS,
    }
    problems = {
        "PortXmitDiscards": _single(read, "hoq_discard", "link_down_discard"),
        "PortRcvSwitchRelayErrors": _single(read, "no_route", "no_lane"),
        "PortRcvConstraintErrors": _single(read, "rcv_constraint_errors"),
        "PortXmitConstraintErrors": _single(read, "xmit_constraint_errors"),
        "LinkDownedCounter": _single(read, "link_downed"),
        "SymbolErrorCounter": _single(read, "rx_crc_errors", "rx_flow_control_errors"),
        "PortRcvErrors": _single(read, *_RCV_ERRORS),
        "PortMalformedPacketErrors": _single(read, "rx_malformed", "rx_oversize"),
        "VL15Dropped": _single(read, "vl15_dropped"),
        "fecn_marked": _sum(read, "fecn_marked"),
        "tx_flow_control": _single(read, "tx_flow_control"),
        "rx_flow_control": _single(read, "rx_flow_control"),
        "rx_flow_control_errors": _single(read, "rx_flow_control_errors"),
        "rx_credit_violations": _single(read, "rx_credit_violations"),
        "queue_peak_bytes": _single(read, "queue_peak_bytes"),
        DROPPED: _sum(read, "dropped"),
    }
    wait_ps, wanted = read("xmit_wait"), np.arange(_CLASSES) < vls
    return [
        _always(of_port),
        {XMIT_WAIT + "_VL{}": (wait_ps // _PS_PER_NS, (wait_ps != 0) | wanted)},
        _by_lane(read, wanted),
        _always(problems | _common(read)),
    ]


def _by_lane(read: _ReadCounter, wanted: NDArray[np.bool_]) -> _Group:
    """What left by each lane, where there are several."""
    octets, packets = read("tx_bytes"), read("tx_packets")
    used = (packets != 0) | wanted
    shown = used & used[:, 1:].any(axis=1, keepdims=True)
    return {
        "PortVLOpPackets{}": (packets, shown),
        "PortVLOpData{}": (_words(octets, packets), shown),
    }


def _words(octets: Cells, packets: Cells) -> Cells:
    """From the LRH to the ICRC, as PktLen counts: without the VCRC."""
    return (octets - _VCRC_BYTES * packets) // _WORD


def _sum(read: _ReadCounter, name: str) -> Cells:
    """Of all classes."""
    total: Cells = read(name).sum(axis=1, keepdims=True)
    return total


def _single(read: _ReadCounter, *names: str) -> Cells:
    """The sum of counters that have one cell."""
    total: Cells = np.sum([read(name)[:, :1] for name in names], axis=0)
    return total


def _common(read: _ReadCounter) -> dict[str, Cells]:
    return {
        "tx_wire_bytes": _single(read, "tx_wire_bytes"),
        "rx_crc_discards": _single(read, "corrupt"),
    }


def _always(counters: Mapping[str, Cells]) -> _Group:
    """Shown by all ports."""
    return {name: (cells, True) for name, cells in counters.items()}
