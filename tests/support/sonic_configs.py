"""Configurations of SONiC's switches, cut down to a few ports.

The values are those that SONiC ships (sonic-buildimage): for a Mellanox SN2700 in the role of a
ToR at 100 Gbit/s, and for an Arista 7050CX3 with Broadcom's Trident 3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Config = dict[str, dict[str, dict[str, str]]]

_DSCPS = {3: 3, 4: 4, 5: 2, 8: 0, 46: 5, 48: 6}
"""DSCP -> traffic class; all others are 1."""
_SAME = {str(number): str(number) for number in range(8)}
_HEADROOM = {5: 30720, 40: 38912, 300: 104448}
"""Of the SN2700 at 100 Gbit/s, by the metres of the cable."""
_XON = 19456


def classes() -> Config:
    """The maps, with all 64 DSCPs."""
    return {
        "DSCP_TO_TC_MAP": {"AZURE": {str(d): str(_DSCPS.get(d, 1)) for d in range(64)}},
        "TC_TO_QUEUE_MAP": {"AZURE": dict(_SAME)},
        "TC_TO_PRIORITY_GROUP_MAP": {
            "AZURE": {tc: tc if tc in ("3", "4", "7") else "0" for tc in _SAME}
        },
        "MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": dict(_SAME)},
        "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {"AZURE": {"3": "3", "4": "4"}},
    }


def port_qos() -> dict[str, str]:
    """A port's row in PORT_QOS_MAP."""
    maps = (
        "dscp_to_tc_map",
        "tc_to_queue_map",
        "tc_to_pg_map",
        "pfc_to_pg_map",
        "pfc_to_queue_map",
    )
    return {**dict.fromkeys(maps, "AZURE"), "pfc_enable": "3,4", "pfcwd_sw_enable": "3,4"}


def queues() -> Config:
    """What a WRED profile and schedulers need beside QUEUE."""
    curve = {"min_threshold": "1048576", "max_threshold": "2097152", "drop_probability": "5"}
    colours = ("green", "yellow", "red")
    return {
        "WRED_PROFILE": {
            "AZURE_LOSSLESS": {
                "ecn": "ecn_all",
                **{f"wred_{colour}_enable": "true" for colour in colours},
                **{f"{colour}_{key}": value for colour in colours for key, value in curve.items()},
            }
        },
        "SCHEDULER": {
            "scheduler.0": {"type": "DWRR", "weight": "14"},
            "scheduler.1": {"type": "DWRR", "weight": "15"},
        },
    }


def mellanox(
    type_: str,
    neighbours: Mapping[str, tuple[str, str, str, int]],
    metadata: Mapping[str, Any] | None = None,
) -> Config:
    """An SN2700. `neighbours`: port -> the neighbour's name, port and type, and the cable's metres.

    A cable of 5 m leads to a server, without a watchdog.
    """
    ports = ",".join(neighbours)
    sizes = {metres for _, _, _, metres in neighbours.values()}
    return {
        "DEVICE_METADATA": {
            "localhost": {
                "type": type_,
                "hwsku": "ACS-MSN2700",
                "buffer_model": "traditional",
                **(metadata or {}),
            }
        },
        "PORT": {
            port: {
                "lanes": ",".join(str(4 * number + lane) for lane in range(4)),
                "speed": "100000",
                "mtu": "9100",
                "admin_status": "up",
            }
            for number, port in enumerate(neighbours)
        },
        "DEVICE_NEIGHBOR": {
            port: {"name": name, "port": far} for port, (name, far, _, _) in neighbours.items()
        },
        "DEVICE_NEIGHBOR_METADATA": {
            name: {"type": kind} for name, _, kind, _ in neighbours.values()
        },
        "CABLE_LENGTH": {"AZURE": {port: f"{own[3]}m" for port, own in neighbours.items()}},
        **classes(),
        "PORT_QOS_MAP": {
            "global": {"dscp_to_tc_map": "AZURE"},
            **{port: port_qos() for port in neighbours},
        },
        "BUFFER_POOL": {
            "ingress_lossless_pool": _pool("ingress", 4580864),
            "ingress_lossy_pool": _pool("ingress", 4580864),
            "egress_lossless_pool": _pool("egress", 13945824),
            "egress_lossy_pool": _pool("egress", 4580864),
        },
        "BUFFER_PROFILE": {
            "ingress_lossy_profile": _profile("ingress_lossy_pool", 3),
            "egress_lossless_profile": _profile("egress_lossless_pool", 7),
            "q_lossy_profile": _profile("egress_lossy_pool", 3),
            **{f"pg_lossless_100000_{metres}m_profile": lossless(metres) for metres in sizes},
        },
        "BUFFER_PG": {
            f"{ports}|0": {"profile": "ingress_lossy_profile"},
            **{
                f"{port}|3-4": {"profile": f"pg_lossless_100000_{own[3]}m_profile"}
                for port, own in neighbours.items()
            },
        },
        "BUFFER_QUEUE": {
            f"{ports}|0-2": {"profile": "q_lossy_profile"},
            f"{ports}|3-4": {"profile": "egress_lossless_profile"},
            f"{ports}|5-6": {"profile": "q_lossy_profile"},
        },
        **queues(),
        "QUEUE": {
            f"{ports}|0-2": {"scheduler": "scheduler.0"},
            f"{ports}|5-6": {"scheduler": "scheduler.0"},
            f"{ports}|3-4": {"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"},
        },
        "PFC_WD": {
            "GLOBAL": {"POLL_INTERVAL": "200"},
            **{
                port: {"action": "drop", "detection_time": "200", "restoration_time": "200"}
                for port, own in neighbours.items()
                if own[3] != 5
            },
        },
    }


def lossless(metres: int) -> dict[str, str]:
    """The profile of PG 3-4 at a cable of so many metres."""
    return {
        "pool": "ingress_lossless_pool",
        "size": str(_XON + _HEADROOM[metres]),
        "xon": str(_XON),
        "xoff": str(_HEADROOM[metres]),
        "dynamic_th": "0",
    }


def _pool(type_: str, size: int) -> dict[str, str]:
    return {"type": type_, "mode": "dynamic", "size": str(size)}


def _profile(pool: str, exponent: int) -> dict[str, str]:
    return {"pool": pool, "size": "0", "dynamic_th": str(exponent)}


def whole_example() -> Config:
    """One ToR with a server and an uplink to a switch without a file."""
    config = mellanox(
        "ToRRouter",
        {
            "Ethernet0": ("Servers0", "eth0", "Server", 5),
            "Ethernet4": ("ARISTA01T1", "Ethernet1", "LeafRouter", 40),
        },
    )
    config["DEVICE_NEIGHBOR_METADATA"]["ARISTA01T1"]["hwsku"] = "Arista-VM"
    return config


def two_tiers() -> dict[str, Config]:
    """Two ToRs with two servers each, and two leaf routers, which are spines to emu."""
    tors = ("str-tor-1", "str-tor-2")
    spines = ("str-leaf-1", "str-leaf-2")
    configs = {}
    for number, name in enumerate(tors):
        servers = {
            f"Ethernet{4 * own}": (f"Servers{2 * number + own}", "eth0", "Server", 5)
            for own in range(2)
        }
        uplinks = {
            f"Ethernet{112 + 4 * own}": (spine, f"Ethernet{4 * number}", "LeafRouter", 40)
            for own, spine in enumerate(spines)
        }
        asn = {"hostname": name, "bgp_asn": str(65100 + number)}
        configs[name] = mellanox("ToRRouter", servers | uplinks, asn)
    for number, name in enumerate(spines):
        downlinks = {
            f"Ethernet{4 * own}": (tor, f"Ethernet{112 + 4 * number}", "ToRRouter", 40)
            for own, tor in enumerate(tors)
        }
        configs[name] = mellanox("LeafRouter", downlinks, {"hostname": name, "bgp_asn": "65000"})
    return configs


def contrast() -> Config:
    """A ToR with Trident 3: a shared headroom pool, and static thresholds at egress."""
    config = mellanox(
        "ToRRouter",
        {f"Ethernet{4 * own}": (f"Servers{own}", "eth0", "Server", 5) for own in range(2)},
        {"hwsku": "Arista-7050CX3"},
    )
    profile = {"pool": "ingress_lossless_pool", "size": "4608", "xon": "4608", "xoff": "160000"}
    config["BUFFER_POOL"] = {
        "ingress_lossless_pool": {**_pool("ingress", 32732160), "xoff": "1622016"},
        "egress_lossless_pool": {**_pool("egress", 32599040), "mode": "static"},
        "egress_lossy_pool": _pool("egress", 24709632),
    }
    config["BUFFER_PROFILE"] = {
        "ingress_lossy_profile": _profile("ingress_lossless_pool", 3),
        "egress_lossless_profile": {
            "pool": "egress_lossless_pool",
            "size": "0",
            "static_th": "32599040",
        },
        "q_lossy_profile": _profile("egress_lossy_pool", 3),
        "pg_lossless_100000_5m_profile": {**profile, "dynamic_th": "0", "xon_offset": "4608"},
    }
    return config


def write(folder: Path, configs: Mapping[str, Any], *, flat: bool = False) -> Path:
    """Writes each switch's file: FOLDER/NAME/config_db.json, or flat FOLDER/NAME.json."""
    for name, config in configs.items():
        path = folder / f"{name}.json" if flat else folder / name / "config_db.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(config, indent=4))
    return folder
