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

from collections import defaultdict
from collections.abc import Mapping

from emu.measure.recording import Counters

RawCounters = Mapping[str, list[int]]
"""Name -> one value per class (priority or VL), or a single one."""

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
_NAMES = [
    [name.format(priority) for name in (_PER_PRIORITY | _DURATIONS).values()]
    for priority in PRIORITIES
]
_SAI = [
    {
        f"SAI_PORT_STAT_PFC_{priority}_RX_PKTS": f"rx_prio{priority}_pause",
        f"SAI_PORT_STAT_PFC_{priority}_TX_PKTS": f"tx_prio{priority}_pause",
        f"SAI_PORT_STAT_PFC_{priority}_RX_PAUSE_DURATION_US": f"rx_prio{priority}_pause_duration",
        f"SAI_PORT_STAT_PFC_{priority}_ON2OFF_RX_PKTS": f"rx_prio{priority}_pause_transition",
    }
    for priority in PRIORITIES
]
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


def ethernet_counters(raw: RawCounters, *, whole: bool = False) -> Counters:
    """A RoCE port's counters; those of a priority that nothing used are left out unless `whole`,
    and what global pauses did where there were none."""
    of_link = {"rx": _is_paused_as_one(raw), "tx": raw["tx_global_pause"][0] > 0}
    by_global = [name for name in _PAUSED if of_link[name[:2]]]
    by_priority = {name: raw[name] for name in _PER_PRIORITY}
    by_priority |= {name: [ps // _PS_PER_US for ps in raw[name]] for name in _DURATIONS}
    by_priority |= dict.fromkeys(by_global, [0] * _CLASSES)
    counters: Counters = {}
    for priority, values in zip(PRIORITIES, zip(*by_priority.values(), strict=True), strict=False):
        if whole or any(values):
            own = dict(zip(_NAMES[priority], values, strict=True))
            counters |= own | _as_sonic_has_them(priority, own)
        if raw["watchdog_detected"][priority]:
            counters |= _of_the_watchdog(priority, raw)
    counters |= {name: raw[name][0] for name in _PLAIN} | _common(raw)
    counters["rx_undersize_pkts"] = raw["rx_malformed"][0]
    counters["rx_oversize_pkts"] = raw["rx_oversize"][0]
    return counters | _of_global_pauses({name: raw[name] for name in by_global})


def _of_the_watchdog(priority: int, raw: RawCounters) -> Counters:
    """Of a priority for which it has found a storm. PFC_WD_STATUS: 1 is `stormed`, 0
    `operational`."""
    detected, restored = (raw[f"watchdog_{what}"][priority] for what in ("detected", "restored"))
    counters = {
        f"prio{priority}_PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": detected,
        f"prio{priority}_PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED": restored,
        f"prio{priority}_PFC_WD_STATUS": detected - restored,
    }
    for old, new in _WATCHDOG.items():
        total, before = raw[old][priority], raw[f"{old}_before"][priority]
        counters[new.format(priority)] = total
        counters[f"{new.format(priority)}_LAST"] = total - before
    return counters


def _is_paused_as_one(raw: RawCounters) -> bool:
    """Whether it obeyed 802.3x, so that its priorities were paused together; a pause frame alone
    does not tell, for a port with PFC does not obey it."""
    return raw["paused"][0] < sum(raw["rx_pause_duration"])


def _of_global_pauses(paused: RawCounters) -> Counters:
    """A port that is paused has all its priorities paused; one that pauses does so for the one
    that it pauses longest."""
    counters: Counters = {}
    for name, by_priority in paused.items():
        way, _, what = name.partition("_")
        most = max(by_priority)
        counters[f"{way}_global_{what}"] = most // _PS_PER_US if "duration" in what else most
    return counters


def _as_sonic_has_them(priority: int, own: Counters) -> Counters:
    """The pause counters once more, by SAI's names; none where there was no pause."""
    sai = {new: own[name] for new, name in _SAI[priority].items()}
    return sai if any(sai.values()) else {}


def infiniband_counters(raw: RawCounters, *, vls: int = 0) -> Counters:
    """An InfiniBand port's counters, all VLs together, and those of each VL that was used or is one
    of the first `vls`."""
    waits = {vl: ps // _PS_PER_NS for vl, ps in enumerate(raw["xmit_wait"]) if ps or vl < vls}
    return {
        "PortXmitData": _words(raw["tx_bytes"], raw["tx_packets"]),
        "PortRcvData": _words(raw["rx_bytes"], raw["rx_packets"]),
        "PortXmitPkts": sum(raw["tx_packets"]),
        "PortRcvPkts": sum(raw["rx_packets"]),
        XMIT_WAIT: sum(raw["xmit_wait"]) // _PS_PER_NS,
        **{f"{XMIT_WAIT}_VL{vl}": wait for vl, wait in waits.items()},
        **_by_lane(raw, vls),
        "PortXmitDiscards": raw["hoq_discard"][0] + raw["link_down_discard"][0],
        "PortRcvSwitchRelayErrors": raw["no_route"][0] + raw["no_lane"][0],
        "PortRcvConstraintErrors": raw["rcv_constraint_errors"][0],
        "PortXmitConstraintErrors": raw["xmit_constraint_errors"][0],
        "LinkDownedCounter": raw["link_downed"][0],
        "SymbolErrorCounter": raw["rx_crc_errors"][0] + raw["rx_flow_control_errors"][0],
        "PortRcvErrors": sum(raw[name][0] for name in _RCV_ERRORS),
        "PortMalformedPacketErrors": raw["rx_malformed"][0] + raw["rx_oversize"][0],
        "VL15Dropped": raw["vl15_dropped"][0],
        "fecn_marked": sum(raw["fecn_marked"]),
        "tx_flow_control": raw["tx_flow_control"][0],
        "rx_flow_control": raw["rx_flow_control"][0],
        "rx_flow_control_errors": raw["rx_flow_control_errors"][0],
        "rx_credit_violations": raw["rx_credit_violations"][0],
        "queue_peak_bytes": raw["queue_peak_bytes"][0],
        DROPPED: sum(raw["dropped"]),
        **_common(raw),
    }


def lost_in_transit(raw: RawCounters) -> int:
    """Packets of a port that the emulator lost: Open vSwitch did not give them back, or had too
    many already to be given another."""
    return raw["transit_lost"][0] + raw["transit_overflow"][0]


def counter_names(fabric: str) -> frozenset[str]:
    """All that a port's counters may be called on this fabric, with those of classes and lanes
    that a run leaves out because nothing used them."""
    used: RawCounters = defaultdict(lambda: [_PS_PER_US] * _CLASSES)
    return frozenset(infiniband_counters(used) if fabric == "ib" else ethernet_counters(used))


def _words(octets: list[int], packets: list[int]) -> int:
    """From the LRH to the ICRC, as PktLen counts: without the VCRC."""
    return (sum(octets) - _VCRC_BYTES * sum(packets)) // _WORD


def _by_lane(raw: RawCounters, vls: int) -> Counters:
    """What left by each lane, where there are several."""
    used = [vl for vl, packets in enumerate(raw["tx_packets"]) if packets or vl < vls]
    counters: Counters = {}
    for vl in used if used != [0] else ():
        packets, octets = raw["tx_packets"][vl], raw["tx_bytes"][vl]
        counters[f"PortVLOpPackets{vl}"] = packets
        counters[f"PortVLOpData{vl}"] = _words([octets], [packets])
    return counters


def _common(raw: RawCounters) -> Counters:
    return {"tx_wire_bytes": raw["tx_wire_bytes"][0], "rx_crc_discards": raw["corrupt"][0]}
