"""An export's tables of classes, WRED, schedulers and the PFC watchdog."""

from __future__ import annotations

from emu.sonic.rows import Fields, Tables, add, named, spans
from emu.sonic.writing_ports import Devices, Note
from emu.spec.classes import DSCPS, PRIORITIES, Classes
from emu.spec.scenario import Spec
from emu.spec.switch import Curve, SwitchSpec, Watchdog
from emu.units import write_time
from topologies.graph import Port

_PS_PER_MS = 10**9
_OWN_GROUP = (7,)
"""Lossy classes that do not share priority group 0 in what SONiC ships."""
_NAME = "AZURE"
_CURVE = "AZURE_LOSSLESS"
_SCHEDULER = "scheduler.0"


def write_qos(spec: Spec, switch: str, tables: Tables, note: Note) -> None:
    """Writes the maps, PORT_QOS_MAP, QUEUE, WRED_PROFILE, SCHEDULER and PFC_WD."""
    devices, topology = Devices(spec), spec.topology.build()
    watchdog = spec.switch(switch).watchdog
    for port in topology.ports[switch]:
        own, settings = devices.port(port), spec.port(port)
        add(tables, "PORT_QOS_MAP", own, _maps(tables, settings))
        _write_queues(spec, port, own, tables, note)
        if settings.pfc is not None and watchdog is not None:
            add(tables, "PORT_QOS_MAP", own, {"pfcwd_sw_enable": _priorities(settings)})
            add(tables, "PFC_WD", own, _watchdog(watchdog, own, note))
            poll = _ms(watchdog.poll_ps, 100, 1000, "PFC_WD|GLOBAL|POLL_INTERVAL", note)
            add(tables, "PFC_WD", "GLOBAL", {"POLL_INTERVAL": poll})
    maps = [
        row["dscp_to_tc_map"] for row in tables["PORT_QOS_MAP"].values() if "dscp_to_tc_map" in row
    ]
    if maps:
        add(tables, "PORT_QOS_MAP", "global", {"dscp_to_tc_map": max(maps, key=maps.count)})


# --- maps ---


def _maps(tables: Tables, settings: SwitchSpec) -> Fields:
    """The row of a port in PORT_QOS_MAP, and the maps that it names."""
    classes, pfc = settings.classes, settings.pfc
    lossless = set(pfc.priorities) if pfc else set()
    fields = {_field(classes): named(tables, *_trusted(classes))}
    queues = {str(tc): str(classes.queue_of(tc)) for tc in range(PRIORITIES)}
    groups = {
        str(tc): str(tc if tc in lossless or tc in _OWN_GROUP else 0) for tc in range(PRIORITIES)
    }
    fields["tc_to_queue_map"] = named(tables, "TC_TO_QUEUE_MAP", _NAME, queues)
    fields["tc_to_pg_map"] = named(tables, "TC_TO_PRIORITY_GROUP_MAP", _NAME, groups)
    fields["pfc_to_queue_map"] = named(tables, "MAP_PFC_PRIORITY_TO_QUEUE", _NAME, queues)
    if lossless:
        own = {str(priority): str(priority) for priority in sorted(lossless)}
        fields["pfc_to_pg_map"] = named(tables, "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", _NAME, own)
        fields["pfc_enable"] = _priorities(settings)
    return fields


def _field(classes: Classes) -> str:
    return "dscp_to_tc_map" if classes.trust == "dscp" else "dot1p_to_tc_map"


def _trusted(classes: Classes) -> tuple[str, str, Fields]:
    """The table, name and fields of the map that gives the class of a packet."""
    if classes.trust == "pcp":
        pcps = {str(pcp): str(classes.priority_of_pcp(pcp)) for pcp in range(PRIORITIES)}
        return "DOT1P_TO_TC_MAP", _NAME, pcps
    dscps = {str(dscp): str(classes.priority_of_dscp(dscp)) for dscp in range(DSCPS)}
    return "DSCP_TO_TC_MAP", _NAME, dscps


def _priorities(settings: SwitchSpec) -> str:
    return ",".join(map(str, sorted(set(settings.pfc.priorities)))) if settings.pfc else ""


# --- queues ---


def _write_queues(spec: Spec, port: Port, own: str, tables: Tables, note: Note) -> None:
    """Writes the rows of a port in QUEUE, and the profiles that they name."""
    settings = spec.port(port)
    rows: dict[tuple[str, str], list[int]] = {}
    for queue in sorted({settings.classes.queue_of(tc) for tc in range(PRIORITIES)}):
        scheduler = named(tables, "SCHEDULER", _SCHEDULER, _scheduler(settings, queue))
        curve = settings.ecn.curve(queue) if settings.ecn else None
        wred = named(tables, "WRED_PROFILE", _CURVE, _curve(curve, own, note)) if curve else ""
        rows.setdefault((scheduler, wred), []).append(queue)
    for (scheduler, wred), queues in rows.items():
        for span in spans(queues):
            fields = {"scheduler": scheduler} | ({"wred_profile": wred} if wred else {})
            add(tables, "QUEUE", f"{own}|{span}", fields)


def _scheduler(settings: SwitchSpec, queue: int) -> Fields:
    if queue in settings.scheduling.strict:
        return {"type": "STRICT"}
    return {"type": "DWRR", "weight": str(settings.scheduling.weights.get(queue, 1))}


def _curve(curve: Curve, own: str, note: Note) -> Fields:
    percent = round(curve.pmax * 100)
    if abs(percent - curve.pmax * 100) > 1e-9:
        note(f"WRED_PROFILE of {own}: a pmax of {curve.pmax * 100:.3g} % is written as {percent} %")
    return {
        "ecn": "ecn_all",
        "wred_green_enable": "true",
        "green_min_threshold": str(curve.kmin_bytes),
        "green_max_threshold": str(curve.kmax_bytes),
        "green_drop_probability": str(percent),
    }


# --- watchdog ---


def _watchdog(watchdog: Watchdog, own: str, note: Note) -> Fields:
    row = f"PFC_WD|{own}"
    return {
        "action": watchdog.action,
        "detection_time": _ms(watchdog.detection_ps, 100, 5000, f"{row}|detection_time", note),
        "restoration_time": _ms(
            watchdog.restoration_ps, 100, 60_000, f"{row}|restoration_time", note
        ),
    }


def _ms(time_ps: int, low: int, high: int, row: str, note: Note) -> str:
    """A time in whole milliseconds within SONiC's range."""
    ms = min(high, max(low, round(time_ps / _PS_PER_MS)))
    if ms * _PS_PER_MS != time_ps:
        note(f"{row}: {write_time(time_ps)} is written as {ms} ms; SONiC takes {low} to {high} ms")
    return str(ms)
