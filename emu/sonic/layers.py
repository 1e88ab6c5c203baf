"""Settings of switches and ports as the layers of a spec.

    switches.roles.leaf     what all leaves have alike, key by key
    switches.nodes.leaf1    the rest, of one switch
    ... ports.spine1        what a port has otherwise than most ports of its switch

Equal settings always give the same layers, so that a spec survives an export and an import.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from emu.sonic.egress import STRICT, Schedule, WredCurve
from emu.sonic.lossy_queues import LossyLimit
from emu.sonic.pfc_profiles import PortPfc
from emu.sonic.qos_maps import PortClasses
from emu.sonic.switch_settings import PortSettings, SwitchSettings
from emu.sonic.watchdog import WatchdogSettings
from emu.spec.classes import PRIORITIES, Classes
from emu.units import write_size

Section = dict[str, Any]


def switch_section(settings: SwitchSettings, ports: Mapping[str, str]) -> Section:
    """The keys of a switch. `ports`: emu's name of each port -> SONiC's."""
    own = {name: settings.ports[port] for name, port in ports.items()}
    buffer_bytes = settings.pool_bytes + _reserved(settings)
    section: Section = {"buffer": write_size(buffer_bytes)}
    if settings.reserved_bytes:
        section["reserved"] = write_size(settings.reserved_bytes)
    section |= _lossy(settings.lossy, buffer_bytes)
    classes = _most([port.classes for port in own.values()])
    pfc = _most([port.pfc for port in own.values()])
    curves = _most([port.curves for port in own.values()])
    used = frozenset.intersection(*(port.used_queues for port in own.values()))
    section |= _nonempty({"classes": _classes(classes)})
    if pfc is not None:
        section["pfc"] = _pfc(pfc)
    if curves:
        section["ecn"] = {"queues": _queues(curves, used)}
    section["scheduling"] = _scheduling(settings.schedule)
    if settings.watchdog:
        section["watchdog"] = _watchdog(settings.watchdog)
    differing = {
        name: _nonempty(
            {
                "classes": _other_classes(classes, port.classes),
                "pfc": _other_pfc(pfc, port.pfc),
                "ecn": _other_curves(curves, used, port),
            }
        )
        for name, port in own.items()
    }
    return section | _nonempty({"ports": _nonempty(differing)})


def _reserved(settings: SwitchSettings) -> int:
    """The bytes of the buffer that are not in the shared pool: headroom, and what all ports and
    priorities reserve."""
    profiles = [port.pfc for port in settings.ports.values() if port.pfc is not None]
    headroom = sum(len(own.priorities) * (own.headroom_bytes or 0) for own in profiles)
    return headroom + len(settings.ports) * PRIORITIES * settings.reserved_bytes


def layered(sections: Mapping[str, Section], roles: Mapping[str, str]) -> Section:
    """The `switches:` section of the keys of each switch. Keys that all switches of a role have
    alike are the role's. `roles`: the role of each switch."""
    by_role: dict[str, list[str]] = {}
    for name, role in roles.items():
        by_role.setdefault(role, []).append(name)
    of_roles = {
        role: _shared([sections[name] for name in names])
        for role, names in by_role.items()
        if len(names) > 1
    }
    of_nodes = {
        name: {key: value for key, value in own.items() if key not in of_roles.get(roles[name], {})}
        for name, own in sections.items()
    }
    return _nonempty({"roles": _nonempty(of_roles), "nodes": _nonempty(of_nodes)})


def _shared(sections: Sequence[Section]) -> Section:
    first, *others = sections
    return {
        key: value
        for key, value in first.items()
        if all(key in own and own[key] == value for own in others)
    }


def _most(values: Sequence[Any]) -> Any:
    """The most frequent value; of several, the first."""
    keys = [_key(value) for value in values]
    return values[keys.index(Counter(keys).most_common(1)[0][0])]


def _key(value: Any) -> str:
    return json.dumps(value, default=lambda own: list(vars(own).values()), sort_keys=True)


def _nonempty(section: Section) -> Section:
    return {key: value for key, value in section.items() if value}


# --- classes ---


def _classes(classes: PortClasses) -> Section:
    section: Section = {}
    if classes.trust == "pcp":
        section["trust"] = "pcp"
        section |= _nonempty({"pcp": _unlike(classes.pcp, range(PRIORITIES))})
    section |= _dscps(classes.dscp)
    return section | _nonempty({"queue": _unlike(classes.queue, range(PRIORITIES))})


def _dscps(priorities: Sequence[int]) -> Section:
    """`dscp` and `other_dscp`: the most frequent priority is that of all others."""
    default = [Classes().priority_of_dscp(dscp) for dscp in range(len(priorities))]
    if list(priorities) == default:
        return {}
    counts = Counter(sorted(priorities))
    other = counts.most_common(1)[0][0]
    listed = _unlike(priorities, [other] * len(priorities))
    return {**_nonempty({"dscp": listed}), "other_dscp": other}


def _other_classes(base: PortClasses, own: PortClasses) -> Section:
    section: Section = {}
    if own.trust != base.trust:
        section["trust"] = own.trust
    for key, ours, theirs in (
        ("pcp", own.pcp, base.pcp),
        ("dscp", own.dscp, base.dscp),
        ("queue", own.queue, base.queue),
    ):
        section |= _nonempty({key: _unlike(ours, theirs)})
    return section


def _unlike(own: Sequence[int], base: Sequence[int]) -> dict[int, int]:
    """The numbers at which two maps differ, with the values of the first."""
    pairs = enumerate(zip(own, base, strict=True))
    return {number: mine for number, (mine, theirs) in pairs if mine != theirs}


# --- PFC ---


def _pfc(pfc: PortPfc) -> Section:
    assert pfc.headroom_bytes is not None, "it is computed where a file does not say"
    return {
        "priorities": list(pfc.priorities),
        "xoff": pfc.xoff,
        **pfc.xon,
        "headroom": write_size(pfc.headroom_bytes),
    }


def _other_pfc(base: PortPfc | None, own: PortPfc | None) -> Section | str:
    if own is None:
        return "off" if base else {}
    section, under = _pfc(own), _pfc(base) if base else {}
    return {key: value for key, value in section.items() if under.get(key) != value}


# --- ECN ---


def _queues(curves: Mapping[int, WredCurve], used: Iterable[int]) -> dict[int, Section | str]:
    """The curve of each queue; the others that are used do not mark."""
    return {queue: _curve(curves[queue]) if queue in curves else "off" for queue in sorted(used)}


def _curve(curve: WredCurve) -> Section:
    return {
        "kmin": write_size(curve.kmin_bytes),
        "kmax": write_size(curve.kmax_bytes),
        "pmax": f"{curve.percent}%",
    }


def _other_curves(
    base: Mapping[int, WredCurve], used: frozenset[int], port: PortSettings
) -> Section | str:
    """`used`: the queues that all ports use, which the base has."""
    if not port.curves:
        return "off" if base else {}
    ours, theirs = _queues(port.curves, port.used_queues), _queues(base, used) if base else {}
    return _nonempty(
        {"queues": {queue: ours[queue] for queue in ours if ours[queue] != theirs.get(queue)}}
    )


# --- the switch ---


def _lossy(limit: LossyLimit, buffer_bytes: int) -> Section:
    """A limit that is larger than the buffer limits nothing."""
    if limit.queue_limit_bytes is not None:
        return {"queue_limit": write_size(min(limit.queue_limit_bytes, buffer_bytes))}
    return {"alpha": limit.alpha}


def _scheduling(schedule: Schedule) -> Section:
    """Strict queues, highest first, and the weights of others that are not 1."""
    strict = [queue for queue, weight in enumerate(schedule) if weight == STRICT]
    weights = {
        queue: weight
        for queue, weight in enumerate(schedule)
        if weight is not None and weight not in (STRICT, 1)
    }
    return {"strict": strict[::-1], **_nonempty({"weights": weights})}


def _watchdog(watchdog: WatchdogSettings) -> Section:
    return {
        "action": watchdog.action,
        "detection": f"{watchdog.detection_ms}ms",
        "restoration": f"{watchdog.restoration_ms}ms",
        "poll": f"{watchdog.poll_ms}ms",
    }
