"""A winner as text for devices: SONiC's CONFIG_DB, Cumulus Linux, and NVIDIA's NICs.

    switches.ecn.kmin      SONiC   WRED_PROFILE green_min_threshold, bytes
    switches.ecn.kmax              green_max_threshold, bytes
    switches.ecn.pmax              green_drop_probability, whole per cent
    switches.pfc.xoff              BUFFER_PROFILE dynamic_th n for alpha 2^n; static_th for bytes
    switches.pfc.headroom          BUFFER_PROFILE xoff, which is SONiC's word for headroom; bytes
    switches.alpha                 BUFFER_PROFILE q_lossy_profile dynamic_th
    switches.ecn.*         Cumulus nv set qos congestion-control ... traffic-class
    hosts.nic.*            mlx5    /sys/kernel/debug/mlx5/PCI/cc_params, in the driver's units

Only searched keys are written. A key that a system has no name for is listed, and none is invented.
Roles and single switches have no file of their own: a text says for which switches a value is.

Sources: SONiC, sonic-yang-models and buffers_config.j2; NVIDIA, Cumulus Linux, Quality of Service;
Linux, drivers/infiniband/hw/mlx5/cong.c.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Any

from pydantic import TypeAdapter

from emu.spec.quantities import SizeOrAlpha, Threshold
from emu.spec.scenario import Spec
from emu.tuning.parameters import Parameter
from emu.units import PS_PER_METRE


@dataclass
class VendorText:
    """The text for one system."""

    system: str
    file: str
    """The name of its file in the folder of the results."""
    text: str = ""
    notes: list[str] = field(default_factory=list)
    """What was rounded, and what the operator has to add."""
    missing: list[str] = field(default_factory=list)
    """Keys that the system has no name for."""


@dataclass(frozen=True)
class _Setting:
    """A searched key with the winner's value."""

    key: str
    place: str
    """`switches`, `switches.roles.leaf`, `hosts` and the like."""
    what: str
    """The rest of the key: `ecn.kmin`, `nic.dcqcn.rai`."""
    value: Any
    number: Any
    """The value in base units: bytes, ns, bit/s, a share."""


def vendor_texts(
    spec: Spec, parameters: Sequence[Parameter], settings: Mapping[str, Any]
) -> list[VendorText]:
    """The texts of a winner with these settings. None on InfiniBand."""
    if not spec.fabric_kind.is_ethernet:
        return []
    wanted = [_setting(own, settings[own.key]) for own in parameters]
    return [_sonic(spec, wanted), _nvidia(spec, wanted)]


def _setting(own: Parameter, value: Any) -> _Setting:
    words = own.key.split(".")
    count = 3 if words[1:2] and words[1] in ("roles", "nodes", "ports") else 1
    place, what = ".".join(words[:count]), ".".join(words[count:])
    return _Setting(own.key, place, what, value, own.column.cell(value))


# ---- SONiC -------------------------------------------------------------------


def _sonic(spec: Spec, wanted: Sequence[_Setting]) -> VendorText:
    made = VendorText("SONiC, CONFIG_DB", "sonic.json")
    tables: dict[str, dict[str, dict[str, str]]] = {}
    for own in wanted:
        write = _SONIC.get(own.what)
        entry = None if write is None or own.place != "switches" else write(spec, own, made)
        if entry is None:
            made.missing.append(own.key)
            continue
        for table, name, values in entry:
            tables.setdefault(table, {}).setdefault(name, {}).update(values)
    if "WRED_PROFILE" in tables:
        made.notes.append(
            "WRED_PROFILE AZURE_LOSSLESS is in force on the queues whose QUEUE entry names it. "
            "Yellow and red packets keep their thresholds; RDMA packets are green."
        )
    made.text = json.dumps(tables, indent=2) + "\n" if tables else ""
    return made


_Entries = list[tuple[str, str, dict[str, str]]]


def _wred(field_name: str) -> Callable[[Spec, _Setting, VendorText], _Entries]:
    def write(_spec: Spec, own: _Setting, _made: VendorText) -> _Entries:
        values = {"ecn": "ecn_all", "wred_green_enable": "true", field_name: str(int(own.number))}
        return [("WRED_PROFILE", "AZURE_LOSSLESS", values)]

    return write


def _drop_probability(_spec: Spec, own: _Setting, made: VendorText) -> _Entries:
    percent = max(1, round(own.number * 100))
    if percent != own.number * 100:
        made.notes.append(f"{own.key} {own.number * 100:.3g} % is written as {percent} %.")
    values = {"ecn": "ecn_all", "wred_green_enable": "true"}
    return [("WRED_PROFILE", "AZURE_LOSSLESS", {**values, "green_drop_probability": str(percent)})]


def _xoff(spec: Spec, own: _Setting, made: VendorText) -> _Entries | None:
    threshold = _threshold(own.value)
    if threshold.size_bytes:
        values = {"static_th": str(threshold.size_bytes)}
    else:
        exponent = log2(threshold.alpha)
        if exponent != round(exponent):
            made.notes.append(f"{own.key} {threshold}: dynamic_th takes powers of two alone.")
            return None
        values = {"dynamic_th": f"{exponent:.0f}"}
    return [("BUFFER_PROFILE", name, values) for name in _lossless_profiles(spec)]


def _threshold(value: Any) -> SizeOrAlpha:
    read: SizeOrAlpha = TypeAdapter(Threshold).validate_python(value)
    return read


def _headroom(spec: Spec, own: _Setting, _made: VendorText) -> _Entries:
    values = {"xoff": str(int(own.number))}
    return [("BUFFER_PROFILE", name, values) for name in _lossless_profiles(spec)]


def _lossy_alpha(_spec: Spec, own: _Setting, made: VendorText) -> _Entries:
    exponent = round(log2(own.number))
    if 2.0**exponent != own.number:
        made.notes.append(
            f"{own.key} {own.number:g} is written as {2.0**exponent:g}, a power of 2."
        )
    return [("BUFFER_PROFILE", "q_lossy_profile", {"dynamic_th": str(exponent)})]


def _lossless_profiles(spec: Spec) -> list[str]:
    """The names that SONiC gives the profiles of lossless priority groups: by speed and cable."""
    topology = spec.topology.build()
    cables = {
        (cable.rate_bps // 10**6, max(1, round(cable.delay_ps / PS_PER_METRE)))
        for port, cable in topology.cable.items()
        if port.node in topology.switch
    }
    return [f"pg_lossless_{speed}_{metres}m_profile" for speed, metres in sorted(cables)]


_SONIC: Mapping[str, Callable[[Spec, _Setting, VendorText], _Entries | None]] = {
    "ecn.kmin": _wred("green_min_threshold"),
    "ecn.kmax": _wred("green_max_threshold"),
    "ecn.pmax": _drop_probability,
    "pfc.xoff": _xoff,
    "pfc.headroom": _headroom,
    "alpha": _lossy_alpha,
}


# ---- NVIDIA: Cumulus Linux and NICs ------------------------------------------


def _nvidia(spec: Spec, wanted: Sequence[_Setting]) -> VendorText:
    made = VendorText("NVIDIA: Cumulus Linux (NVUE), NICs with mlx5", "mlnx.txt")
    switch, nic = [], []
    for own in wanted:
        if (line := _nvue(spec, own, made)) is not None:
            switch.append(line)
        elif (line := _mlx5(own, made)) is not None:
            nic.append(line)
        else:
            made.missing.append(own.key)
    if switch:
        switch = ["# on each switch", *switch, "nv config apply"]
    if nic:
        address = "PCI=0000:03:00.0  # the address of the NIC's port, as `lspci -D` prints it"
        nic = ["# on each host, as root", address, *nic]
    made.text = "".join(f"{line}\n" for line in (*switch, *nic))
    return made


def _nvue(spec: Spec, own: _Setting, made: VendorText) -> str | None:
    """The line of a switch. None: there is none."""
    name = {"ecn.kmin": "min-threshold", "ecn.kmax": "max-threshold", "ecn.pmax": "probability"}
    if own.place != "switches" or own.what not in name:
        return None
    value = int(own.number)
    if own.what == "ecn.pmax":
        value = max(1, round(own.number * 100))
        if value != own.number * 100:
            made.notes.append(f"{own.key} {own.number * 100:.3g} % is written as {value} %.")
    classes = ",".join(map(str, _lossless_queues(spec))) or "3"
    start = f"nv set qos congestion-control default-global traffic-class {classes}"
    return f"{start} {name[own.what]} {value}"


def _lossless_queues(spec: Spec) -> list[int]:
    topology = spec.topology.build()
    queues: set[int] = set()
    for port in topology.cable:
        if port.node in topology.switch:
            queues |= spec.port(port).lossless_queues
    return sorted(queues)


def _mlx5(own: _Setting, made: VendorText) -> str | None:
    """The line of a NIC. None: there is none."""
    if own.place != "hosts" or not own.what.startswith("nic."):
        return None
    control, _, key = own.what.removeprefix("nic.").partition(".")
    if control == "roce_cc_ecn" and key in _SAME_UNITS:
        return _write(_SAME_UNITS[key], int(own.value))
    if control == "dcqcn" and key in _OF_DCQCN:
        name, number = _OF_DCQCN[key]
        value = round(number(own.number))
        note = (
            "hosts.nic.dcqcn is the DCQCN of the paper; a NIC's differs, so its values are a first "
            "guess: search with cc: dcqcn-nvidia for those of NICs."
        )
        if note not in made.notes:
            made.notes.append(note)
        return _write(name, value) if name != "rp_byte_reset" or value < 2**15 else None
    return None


def _write(name: str, value: int) -> str:
    return f"echo {value} > /sys/kernel/debug/mlx5/$PCI/cc_params/{name}"


_SAME_UNITS = {
    "clamp_tgt_rate": "rp_clamp_tgt_rate",
    "clamp_tgt_rate_after_time_inc": "rp_clamp_tgt_rate_ati",
    "rpg_time_reset": "rp_time_reset",
    "rpg_byte_reset": "rp_byte_reset",
    "rpg_threshold": "rp_threshold",
    "rpg_max_rate": "rp_max_rate",
    "rpg_ai_rate": "rp_ai_rate",
    "rpg_hai_rate": "rp_hai_rate",
    "rpg_gd": "rp_gd",
    "rpg_min_dec_fac": "rp_min_dec_fac",
    "rpg_min_rate": "rp_min_rate",
    "rate_to_set_on_first_cnp": "rp_rate_to_set_on_first_cnp",
    "dce_tcp_g": "rp_dce_tcp_g",
    "dce_tcp_rtt": "rp_dce_tcp_rtt",
    "rate_reduce_monitor_period": "rp_rate_reduce_monitor_period",
    "initial_alpha_value": "rp_initial_alpha_value",
    "min_time_between_cnps": "np_min_time_between_cnps",
    "cnp_dscp": "np_cnp_dscp",
}
"""Keys of hosts.nic.roce_cc_ecn, whose units are the driver's."""

_NS_PER_US = 1000
_OF_DCQCN: Mapping[str, tuple[str, Callable[[float], float]]] = {
    "rai": ("rp_ai_rate", lambda bps: bps / 10**6),
    "rhai": ("rp_hai_rate", lambda bps: bps / 10**6),
    "min_rate": ("rp_min_rate", lambda bps: bps / 10**6),
    "increase_timer": ("rp_time_reset", lambda ns: ns / _NS_PER_US),
    "alpha_timer": ("rp_dce_tcp_rtt", lambda ns: ns / _NS_PER_US),
    "cnp_interval": ("np_min_time_between_cnps", lambda ns: ns / _NS_PER_US),
    "byte_counter": ("rp_byte_reset", lambda size: size),
    "fast_recovery": ("rp_threshold", lambda steps: steps),
    "g": ("rp_dce_tcp_g", lambda share: 1024 * (1 - share)),
}
"""Keys of hosts.nic.dcqcn -> the driver's name, and the number in its unit. NICs keep the share
g/1024 of alpha, so the paper's gain is what is left."""
