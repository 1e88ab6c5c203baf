"""An export's tables of buffers: BUFFER_POOL, BUFFER_PROFILE, BUFFER_PG and BUFFER_QUEUE.

The ingress pool is emu's shared pool. SONiC needs profiles of lossy groups and lossless queues as
well, of which a spec says nothing: they are as SONiC ships them, and limit nothing else.
"""

from __future__ import annotations

from math import log2

from emu.sonic.rows import Fields, Tables, add, named, spans
from emu.sonic.writing_ports import Devices, Note
from emu.spec.classes import PRIORITIES
from emu.spec.headroom import headroom_of
from emu.spec.scenario import Spec
from emu.spec.switch import Pfc, SwitchSpec
from emu.units import BPS_PER_MBPS, PS_PER_METRE
from topologies.graph import Port

INGRESS, EGRESS, EGRESS_LOSSY = "ingress_lossless_pool", "egress_lossless_pool", "egress_lossy_pool"
_LOSSY_GROUP = "ingress_lossy_profile"
_LOSSLESS_QUEUE = "egress_lossless_profile"
_LOSSY_QUEUE = "q_lossy_profile"
_EXPONENTS = (-8, 7)


def write_buffers(spec: Spec, switch: str, tables: Tables, note: Note) -> None:
    """Writes the pools, the profiles, and the rows of all ports."""
    devices, settings = Devices(spec), spec.switch(switch)
    pool = str(spec.shared_pool(switch))
    ports = spec.topology.build().ports[switch]
    for port in ports:
        _write_groups(spec, port, devices.port(port), tables, note)
        _write_queues(spec, port, devices.port(port), tables, note)
    is_static = all(own.pfc is None or own.pfc.xoff.size_bytes for own in map(spec.port, ports))
    mode = "static" if is_static and settings.queue_limit_bytes is not None else "dynamic"
    pools = {INGRESS: pool, EGRESS: str(settings.buffer_bytes), EGRESS_LOSSY: pool}
    for name, size in pools.items():
        add(
            tables,
            "BUFFER_POOL",
            name,
            {"type": name.partition("_")[0], "mode": mode, "size": size},
        )


def _write_groups(spec: Spec, port: Port, own: str, tables: Tables, note: Note) -> None:
    settings = spec.port(port)
    lossless = set(settings.pfc.priorities) if settings.pfc else set()
    if settings.pfc is not None:
        cable = spec.topology.build().cable[port]
        metres = -(-cable.delay_ps // PS_PER_METRE)
        name = f"pg_lossless_{cable.rate_bps // BPS_PER_MBPS}_{metres}m_profile"
        fields = _lossless(settings, settings.pfc, headroom_of(spec, port), own, note)
        profile = named(tables, "BUFFER_PROFILE", name, fields)
        for span in spans(lossless):
            add(tables, "BUFFER_PG", f"{own}|{span}", {"profile": profile})
    lossy = {"pool": INGRESS, "size": "0", "dynamic_th": "3"}
    add(
        tables,
        "BUFFER_PG",
        f"{own}|{min(set(range(PRIORITIES)) - lossless, default=0)}",
        {"profile": named(tables, "BUFFER_PROFILE", _LOSSY_GROUP, lossy)},
    )


def _lossless(settings: SwitchSpec, pfc: Pfc, headroom: int, own: str, note: Note) -> Fields:
    reserved = settings.reserved_bytes
    fields = {
        "pool": INGRESS,
        "size": str(reserved + headroom),
        "xoff": str(headroom),
        "xon": str(reserved),
    }
    if pfc.xoff.size_bytes:
        fields["static_th"] = str(pfc.xoff.size_bytes)
    else:
        fields["dynamic_th"] = _exponent(pfc.xoff.alpha, f"switches.pfc.xoff at {own}", note)
    if pfc.xon_below_xoff:
        fields["xon_offset"] = str(pfc.xon_below_xoff)
    return fields


def _write_queues(spec: Spec, port: Port, own: str, tables: Tables, note: Note) -> None:
    settings = spec.port(port)
    used = {settings.classes.queue_of(tc) for tc in range(PRIORITIES)}
    lossless = settings.lossless_queues & used
    rows = (
        (lossless, _LOSSLESS_QUEUE, {"pool": EGRESS, "size": "0", "dynamic_th": "7"}),
        (used - lossless, _LOSSY_QUEUE, _lossy(settings, note)),
    )
    for queues, name, fields in rows:
        for span in spans(queues):
            profile = named(tables, "BUFFER_PROFILE", name, fields)
            add(tables, "BUFFER_QUEUE", f"{own}|{span}", {"profile": profile})


def _lossy(settings: SwitchSpec, note: Note) -> Fields:
    fields = {"pool": EGRESS_LOSSY, "size": "0"}
    if settings.queue_limit_bytes is not None:
        return {**fields, "static_th": str(settings.queue_limit_bytes)}
    return {**fields, "dynamic_th": _exponent(settings.alpha, "switches.alpha", note)}


def _exponent(alpha: float, key: str, note: Note) -> str:
    """n for an alpha of 2^n, the nearest that SONiC has."""
    low, high = _EXPONENTS
    exponent = min(high, max(low, round(log2(alpha))))
    if 2.0**exponent != alpha:
        note(f"{key}: alpha {alpha:g} is written as {2.0**exponent:g}; SONiC has powers of 2 alone")
    return str(exponent)
