"""The tables of CONFIG_DB that emu reads: keys, fields, ranges, and reasons to ignore the rest.

All values are text. Sizes are bytes unless a comment says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

LARGEST_BYTES = 2**32 - 1


class Kind(Protocol):
    """How a field's text is read."""

    def parse(self, text: str) -> Any:
        """The value. Raises ValueError with what the field takes."""


@dataclass(frozen=True)
class Whole:
    """A whole number."""

    low: int
    high: int

    def parse(self, text: str) -> int:
        if re.fullmatch("-?[0-9]{1,18}", text) and self.low <= int(text) <= self.high:
            return int(text)
        raise ValueError(f"{text!r} is not a whole number from {self.low} to {self.high}")


@dataclass(frozen=True)
class OneOf:
    """One of some words, in any case."""

    words: tuple[str, ...]

    def parse(self, text: str) -> str:
        if text.lower() in map(str.lower, self.words):
            return next(word for word in self.words if word.lower() == text.lower())
        raise ValueError(f"{text!r} is not one of {', '.join(self.words)}")


class Priorities:
    """Priorities: `3,4`, or nothing."""

    def parse(self, text: str) -> tuple[int, ...]:
        words = [word.strip() for word in text.split(",") if word.strip()]
        if all(re.fullmatch("[0-7]", word) for word in words):
            return tuple(sorted({int(word) for word in words}))
        raise ValueError(f"{text!r} is not a list of priorities from 0 to 7 like 3,4")


class Metres:
    """The length of a cable: `40m`."""

    def parse(self, text: str) -> int:
        if re.fullmatch("[0-9]{1,6}m", text):
            return int(text[:-1])
        raise ValueError(f"{text!r} is not a length in whole metres like 40m")


class AutonomousSystem:
    """The number of an autonomous system, or None where there is no BGP."""

    def parse(self, text: str) -> int | None:
        return None if text in ("None", "none", "") else Whole(1, 4_294_967_294).parse(text)


class Text:
    """Any text."""

    def parse(self, text: str) -> str:
        return text


@dataclass(frozen=True)
class Reference:
    """The name of a row of another table; older files write it as `[TABLE|name]`."""

    table: str
    otherwise: tuple[str, ...] = ()
    """Words that refer to no row."""

    def parse(self, text: str) -> str:
        match = re.fullmatch(rf"\[{self.table}\|([^|\]]+)\]", text)
        name = match[1] if match else text
        if not name or "|" in name or "[" in name:
            raise ValueError(f"{text!r} is not the name of a row of {self.table}")
        return name


@dataclass(frozen=True)
class Table:
    """A table that emu reads."""

    fields: Mapping[str, Kind] = field(default_factory=dict)
    each: tuple[Kind, Kind] | None = None
    """Of a table whose fields have any name (a map): the kinds of name and value."""
    by_port: bool = False
    """Whether a key begins with ports; `global` and the like stand for none."""
    numbers: int = 0
    """If a key ends with a number or a range (`Ethernet0|3-4`): how many numbers there are."""
    words: tuple[str, ...] = ()
    """Keys that are no ports."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Fields without a counterpart -> why."""


_TC = Whole(0, 7)
_QUEUES = 20
"""The most queues of a port. Those from 8 on are for multicast, or for the switch's processor."""
_BYTES = Whole(0, LARGEST_BYTES)
_THRESHOLD = Whole(0, 2**40)
_MS = Whole(1, 3_600_000)
_COLOURS = ("yellow", "red")
MARKS_GREEN = ("ecn_all", "ecn_green", "ecn_green_yellow", "ecn_green_red")
"""The settings with which a green packet is marked."""
_ONLY_GREEN = "emu's packets have no colour: all are green"
_WRED_FIELDS = ("min_threshold", "max_threshold", "drop_probability")
NO_COUNTERPART = "emu has no counterpart"

TABLES: dict[str, Table] = {
    "DEVICE_METADATA": Table(
        {
            "type": Text(),
            "hwsku": Text(),
            "hostname": Text(),
            "buffer_model": OneOf(("traditional", "dynamic")),
            "bgp_asn": AutonomousSystem(),
        },
    ),
    "PORT": Table(
        {
            "speed": Whole(1, 10_000_000),  # Mbit/s
            "mtu": Whole(68, 9216),
            "admin_status": OneOf(("up", "down")),
            "pfc_asym": OneOf(("on", "off")),
        },
        by_port=True,
        ignored={
            "lanes": "emu's ports have no lanes",
            "fec": "emu's cables damage nothing unless faults: says so",
            "alias": "a second name of the port",
            "index": "a second name of the port",
            "description": "a text for people",
            "autoneg": "both ends have the speed that the file says",
        },
    ),
    "CABLE_LENGTH": Table(each=(Text(), Metres())),
    "DEVICE_NEIGHBOR": Table({"name": Text(), "port": Text()}, by_port=True),
    "DEVICE_NEIGHBOR_METADATA": Table({"type": Text(), "hwsku": Text()}),
    "DSCP_TO_TC_MAP": Table(each=(Whole(0, 63), _TC)),
    "DOT1P_TO_TC_MAP": Table(each=(_TC, _TC)),
    "TC_TO_QUEUE_MAP": Table(each=(_TC, _TC)),
    "TC_TO_PRIORITY_GROUP_MAP": Table(each=(_TC, _TC)),
    "MAP_PFC_PRIORITY_TO_QUEUE": Table(each=(_TC, _TC)),
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": Table(each=(_TC, _TC)),
    "PORT_QOS_MAP": Table(
        {
            "dscp_to_tc_map": Reference("DSCP_TO_TC_MAP"),
            "dot1p_to_tc_map": Reference("DOT1P_TO_TC_MAP"),
            "tc_to_queue_map": Reference("TC_TO_QUEUE_MAP"),
            "tc_to_pg_map": Reference("TC_TO_PRIORITY_GROUP_MAP"),
            "pfc_to_queue_map": Reference("MAP_PFC_PRIORITY_TO_QUEUE"),
            "pfc_to_pg_map": Reference("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"),
            "pfc_enable": Priorities(),
            "pfcwd_sw_enable": Priorities(),
            "scheduler": Reference("SCHEDULER"),
        },
        by_port=True,
        words=("global",),
        ignored={
            "scheduler": "emu's ports are not shaped",
            "tc_to_dscp_map": "emu's switches leave DSCPs as they are",
            "tc_to_dot1p_map": "emu's switches leave PCPs as they are",
            "dscp_to_fc_map": "ECMP does not look at classes",
            "exp_to_fc_map": "ECMP does not look at classes",
        },
    ),
    "BUFFER_POOL": Table(
        {
            "type": OneOf(("ingress", "egress", "both")),
            "mode": OneOf(("static", "dynamic")),
            "size": _THRESHOLD,
            "xoff": _THRESHOLD,
        },
        ignored={"percentage": "the switch computes sizes by it"},
    ),
    "BUFFER_PROFILE": Table(
        {
            "pool": Reference("BUFFER_POOL"),
            "size": _BYTES,
            "dynamic_th": Whole(-8, 8),
            "static_th": _THRESHOLD,
            "xoff": _BYTES,
            "xon": _BYTES,
            "xon_offset": _BYTES,
            "headroom_type": OneOf(("static", "dynamic")),
            "packet_discard_action": OneOf(("drop", "trim")),
        },
    ),
    "BUFFER_PG": Table(
        {"profile": Reference("BUFFER_PROFILE", ("NULL",))}, by_port=True, numbers=8
    ),
    "BUFFER_QUEUE": Table(
        {"profile": Reference("BUFFER_PROFILE", ("NULL",))}, by_port=True, numbers=_QUEUES
    ),
    "WRED_PROFILE": Table(
        {
            "ecn": OneOf((*MARKS_GREEN, "ecn_none", "ecn_yellow", "ecn_red", "ecn_yellow_red")),
            "wred_green_enable": OneOf(("true", "false")),
            "green_min_threshold": _BYTES,
            "green_max_threshold": _BYTES,
            "green_drop_probability": Whole(0, 100),  # per cent
            **{
                f"{colour}_{name}": Whole(0, 100) if name == "drop_probability" else _BYTES
                for colour in _COLOURS
                for name in _WRED_FIELDS
            },
            **{f"wred_{colour}_enable": OneOf(("true", "false")) for colour in _COLOURS},
        },
        ignored={
            f"{prefix}{colour}_{name}": _ONLY_GREEN
            for colour in _COLOURS
            for prefix, name in (("wred_", "enable"), *(("", name) for name in _WRED_FIELDS))
        },
    ),
    "QUEUE": Table(
        {"scheduler": Reference("SCHEDULER"), "wred_profile": Reference("WRED_PROFILE")},
        by_port=True,
        numbers=_QUEUES,
    ),
    "SCHEDULER": Table(
        {"type": OneOf(("DWRR", "WRR", "STRICT")), "weight": Whole(1, 100)},
        ignored=dict.fromkeys(
            ("meter_type", "cir", "pir", "cbs", "pbs", "priority"), "emu's queues are not shaped"
        ),
    ),
    "PFC_WD": Table(
        {
            "action": OneOf(("drop", "forward", "alert")),
            "detection_time": Whole(100, 5000),  # ms
            "restoration_time": Whole(100, 60_000),  # ms
            "POLL_INTERVAL": Whole(100, 1000),  # ms
        },
        by_port=True,
        words=("GLOBAL",),
        ignored={"BIG_RED_SWITCH": "emu's watchdog acts on single queues"},
    ),
    "DEFAULT_LOSSLESS_BUFFER_PARAMETER": Table(
        {"default_dynamic_th": Whole(-8, 8)},
        ignored={"over_subscribe_ratio": "emu has no shared headroom pool: each port has its own"},
    ),
    "LOSSLESS_TRAFFIC_PATTERN": Table(
        ignored=dict.fromkeys(
            ("mtu", "small_packet_percentage"), "emu computes headroom for full-size packets"
        ),
    ),
    "BGP_NEIGHBOR": Table(
        {"name": Text(), "asn": Text()},
        ignored=dict.fromkeys(
            ("local_addr", "nhopself", "rrclient", "asn", "name", "holdtime", "keepalive"),
            "emu has a session on each cable between switches, without addresses",
        ),
    ),
}
"""The tables that emu reads."""

_OF_OTHER_SUBJECTS = """
    AAA ACL_RULE ACL_TABLE ACL_TABLE_TYPE AUTO_TECHSUPPORT AUTO_TECHSUPPORT_FEATURE BANNER_MESSAGE
    BGP_DEVICE_GLOBAL BGP_GLOBALS CONSOLE_SWITCH CRM DEBUG_COUNTER DHCP_SERVER DNS_NAMESERVER
    FEATURE FLEX_COUNTER_TABLE GNMI KDUMP LLDP LOGGER MACSEC_PROFILE MIRROR_SESSION MUX_CABLE NEIGH
    NTP NTP_SERVER PASSW_HARDENING PEER_SWITCH POLICER PORT_STORM_CONTROL RADIUS RESTAPI SFLOW SNMP
    SNMP_COMMUNITY SSH_SERVER SWITCH_HASH SYSLOG_CONFIG SYSLOG_SERVER SYSTEM_DEFAULTS TACPLUS
    TACPLUS_SERVER TELEMETRY TUNNEL VERSIONS VRF VXLAN_TUNNEL WARM_RESTART XCVRD_LOG
"""

IGNORED_TABLES: dict[str, str] = {
    "BUFFER_PORT_INGRESS_PROFILE_LIST": "emu has no limits for a whole port",
    "BUFFER_PORT_EGRESS_PROFILE_LIST": "emu has no limits for a whole port",
    "PORTCHANNEL": "each member is a cable of its own, and ECMP chooses among them",
    "PORTCHANNEL_MEMBER": "each member is a cable of its own, and ECMP chooses among them",
    "PORTCHANNEL_INTERFACE": "emu routes by shortest paths",
    "INTERFACE": "emu numbers hosts and switches by itself",
    "LOOPBACK_INTERFACE": "emu numbers hosts and switches by itself",
    "VLAN": "emu's switches do not separate VLANs",
    "VLAN_MEMBER": "emu's switches do not separate VLANs",
    "VLAN_INTERFACE": "emu's switches do not separate VLANs",
    "MGMT_INTERFACE": "management is outside of the fabric",
    "MGMT_PORT": "management is outside of the fabric",
    "BGP_PEER_RANGE": "emu's sessions are those of its cables",
    "BGP_INTERNAL_NEIGHBOR": "emu's sessions are those of its cables",
    "BGP_NEIGHBOR_AF": "emu's sessions are those of its cables",
    "BGP_MONITORS": "emu's sessions are those of its cables",
    "STATIC_ROUTE": "emu routes by shortest paths",
    "TC_TO_DSCP_MAP": "emu's switches leave DSCPs as they are",
    "TC_TO_DOT1P_MAP": "emu's switches leave PCPs as they are",
    "DSCP_TO_FC_MAP": "ECMP does not look at classes",
    "EXP_TO_FC_MAP": "ECMP does not look at classes",
    "MPLS_TC_TO_TC_MAP": "emu's packets have no MPLS labels",
    "SWITCH_TRIMMING": "emu's switches drop packets whole",
    **dict.fromkeys(_OF_OTHER_SUBJECTS.split(), "it is not about cables, queues or buffers"),
}
"""Tables of SONiC without a counterpart, each with the reason. Others of which emu does not know
are ignored, too, unless their name looks like a misspelt one."""


def reason(table: str, field_name: str) -> str:
    """Why a field, or a table, has no counterpart."""
    known = TABLES.get(table)
    if known is None:
        return IGNORED_TABLES.get(table, "emu does not know this table")
    return known.ignored.get(field_name, NO_COUNTERPART)
