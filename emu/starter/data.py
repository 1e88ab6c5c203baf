"""Wishes -> the keys of a spec, and a spec that has been tried: it validates, and ends in time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from emu.errors import SpecError, UsageError
from emu.measure.bound import batches_of, fabric_of, last_finish_bound
from emu.spec.headroom import reserved_of
from emu.spec.made import spec_from_mapping
from emu.spec.model import Spec, SwitchSpec
from emu.spec.presets import PRESETS
from emu.spec.quantities import Length, Rate, Size
from emu.starter.shapes import topology_of
from emu.starter.wishes import Wishes
from emu.units import PS_PER_NS, round_up, write_rate, write_size, write_time

RATE: TypeAdapter[int] = TypeAdapter(Rate)
LENGTH: TypeAdapter[int] = TypeAdapter(Length)
SIZE: TypeAdapter[int] = TypeAdapter(Size)
"""What options take, as specs have it."""

_LOAD = 0.3
"""Of a host's link, as background load offers."""
_DCQCN = "dcqcn-nvidia"
"""As a NIC is delivered; the steps of DCQCN's paper are for links of 40 Gbit/s."""
_MOST_DOUBLED = 11
_ROOM = 4
"""How much longer than at the rate of the links a run may take."""


def starter_data(wishes: Wishes) -> dict[str, Any]:
    """Raises UsageError where no spec is as they wish."""
    data = _asked_for(wishes)
    data["switches"] |= _enough_buffer(data, wishes)
    spec = _tried(data)
    if (limit_ps := _time_needed_ps(spec)) > spec.time_limit_ps:
        data["time_limit"] = write_time(limit_ps)
    data["capture"] = [_port_to_first_host(spec)]
    data["verify"] = _checks(spec, wishes)
    if wishes.compare:
        data["compare"] = _variants(data, wishes)
    _tried(data)
    return {key: value for key, value in data.items() if value}


def _tried(data: dict[str, Any]) -> Spec:
    try:
        return _spec(data)
    except SpecError as error:
        raise UsageError(f"these options make no valid spec:\n{error}") from None


def _spec(data: dict[str, Any]) -> Spec:
    return spec_from_mapping(dict(data), source="the spec", folder=Path())


def _asked_for(wishes: Wishes) -> dict[str, Any]:
    link = {"rate": wishes.rate, "length": wishes.length}
    tiers = ("host",) if wishes.topology == "fat-tree" else ("host", "fabric")
    hosts: dict[str, Any] = {"nic": _nic(wishes)}
    if wishes.topology == "rail":
        hosts = {"gpus": wishes.gpus or 8, **hosts}
    return {
        "name": wishes.name,
        "fabric": wishes.fabric,
        "seed": wishes.seed,
        "topology": {**topology_of(wishes), "links": dict.fromkeys(tiers, link)},
        "switches": _switches(wishes),
        "hosts": hosts,
        "traffic": [_traffic(wishes)],
    }


def _switches(wishes: Wishes) -> dict[str, Any]:
    if wishes.fabric == "ib":
        return {}
    if wishes.preset:
        return {"preset": wishes.preset}
    return {"pfc": "on", "ecn": "on"} if wishes.lossless else {}


def _nic(wishes: Wishes) -> dict[str, Any]:
    cc = wishes.cc or _usual_control(wishes)
    return {"mtu": 4096, "cc": cc, **_dscp(wishes)}


def _usual_control(wishes: Wishes) -> str:
    if wishes.fabric == "ib":
        return "none"
    if wishes.preset == "dctcp":
        return "dctcp"
    return _DCQCN if wishes.lossless or wishes.preset else "none"


def _dscp(wishes: Wishes) -> dict[str, Any]:
    """One that a preset calls lossless, where that of all NICs is not."""
    preset = PRESETS.get(wishes.preset or "")
    if preset is None or preset.pfc is None or wishes.fabric == "ib":
        return {}
    lossless = preset.pfc.priorities
    if preset.classes.priority_of_dscp(26) in lossless:
        return {}
    return {"dscp": preset.classes.dscp_of_priority(lossless[0])}


# --- traffic ---


def _traffic(wishes: Wishes) -> dict[str, Any]:
    own = PATTERNS[wishes.pattern](wishes)
    size = {} if wishes.pattern in ("background", "storage") else {"size": wishes.size or "1MB"}
    if wishes.pattern == "storage":
        size = {"block": wishes.size or "64KiB"}
    elif wishes.size and not size:
        raise UsageError("--size is not for background load, whose sizes are measured ones")
    return {"name": wishes.pattern, "pattern": wishes.pattern, **own, **size}


def _to_one(wishes: Wishes) -> dict[str, Any]:
    return {"from": "all[1:]", "to": "all[0]"}


def _from_one(wishes: Wishes) -> dict[str, Any]:
    return {"from": "all[0]", "to": "all[1:]"}


def _halves(wishes: Wishes) -> dict[str, Any]:
    half = wishes.hosts // 2
    return {"from": f"all[:{half}]", "to": f"all[{half}:{2 * half}]"}


def _among(wishes: Wishes) -> dict[str, Any]:
    return {"among": "all"}


def _hot_spot(wishes: Wishes) -> dict[str, Any]:
    return {"among": "all", "hot": "all[0]", "count": 10}


def _background(wishes: Wishes) -> dict[str, Any]:
    offered = round(RATE.validate_python(wishes.rate) * _LOAD)
    return {"among": "all", "sizes": "websearch", "rate": write_rate(offered), "count": 100}


def _storage(wishes: Wishes) -> dict[str, Any]:
    return {**_halves(wishes), "count": 100, "depth": 8, "reads": "70%", "media": "80us"}


PATTERNS: dict[str, Callable[[Wishes], dict[str, Any]]] = {
    "incast": _to_one,
    "outcast": _from_one,
    "pair": _halves,
    "permutation": _among,
    "all-to-all": _among,
    "hot-spot": _hot_spot,
    "background": _background,
    "all-reduce": _among,
    "reduce-scatter": _among,
    "all-gather": _among,
    "broadcast": _among,
    "alltoall": _among,
    "storage": _storage,
}


# --- what follows from the rest ---


def _enough_buffer(data: dict[str, Any], wishes: Wishes) -> dict[str, Any]:
    """Of an Ethernet switch, with PFC if a variant has it; most presets have their own."""
    if data["fabric"] == "ib" or _of_preset(wishes, "buffer_bytes"):
        return {}
    return _buffer_with_pfc(data) if wishes.compare else _doubled_buffer(data)


def _buffer_with_pfc(data: dict[str, Any]) -> dict[str, Any]:
    """Whatever the fabric has itself."""
    return _doubled_buffer({**data, "fabric": "roce", "switches": {"pfc": "on"}})


def _of_preset(wishes: Wishes, field: str) -> bool:
    """Whether the preset that was asked for has a key of its own."""
    preset = PRESETS.get(wishes.preset or "")
    return preset is not None and field in preset.model_fields_set


def _doubled_buffer(data: dict[str, Any]) -> dict[str, Any]:
    """The default, doubled as often as it takes until half of it is no headroom."""
    sizes = [SwitchSpec().buffer_bytes << doubled for doubled in range(_MOST_DOUBLED)]
    enough = next(filter(None, (_if_enough(data, size) for size in sizes)), None)
    return {"buffer": enough or write_size(sizes[-1])}


def _if_enough(data: dict[str, Any], size: int) -> str | None:
    """A buffer, if it is large enough."""
    written = write_size(size)
    try:
        spec = _spec({**data, "switches": {**data["switches"], "buffer": written}})
    except SpecError:
        return None
    reserved = max(reserved_of(spec, name) for name in spec.topology.build().switch)
    return written if size >= 2 * reserved else None


def _time_needed_ps(spec: Spec) -> int:
    """What the links allow, with room."""
    topology, workload = spec.topology.build(), spec.workload()
    batches = batches_of(workload, workload.message_flows)
    bound = last_finish_bound(topology, batches, fabric_of(spec, topology))
    return 0 if bound is None else round_up(_ROOM * bound.last_finish_ns) * PS_PER_NS


def _port_to_first_host(spec: Spec) -> str:
    topology = spec.topology.build()
    host = topology.hosts[0].name
    return topology.port_name[topology.peer[topology.ports[host][0]]]


def _checks(spec: Spec, wishes: Wishes) -> list[dict[str, Any]]:
    """Everything arrives; on a lossless priority nothing is lost."""
    checks: list[dict[str, Any]] = [{"completed": "all"}]
    host = spec.traffic[0].senders[0]
    topology = spec.topology.build()
    pfc = spec.port(topology.peer[topology.ports[host][0]]).pfc
    priority = spec.priority(host, None)
    if spec.fabric == "roce" and pfc is not None and priority in pfc.priorities:
        checks.append({"lossless": {"priority": priority}})
    return checks


def _variants(data: dict[str, Any], wishes: Wishes) -> dict[str, Any]:
    """The four fabrics of the shipped comparisons; of a preset that marks for DCTCP, with that."""
    completed = [{"completed": "all"}]
    buffer = _buffer_with_pfc(data) if wishes.fabric == "ib" else {}
    lossless = {"preset": wishes.preset} if _of_preset(wishes, "pfc") else {"pfc": "on", **buffer}
    marking = ("roce-dcqcn", {**lossless, "ecn": "on"}, _DCQCN)
    if wishes.preset == "dctcp":
        marking = ("roce-dctcp", {"preset": "dctcp"}, "dctcp")
    roce = (
        ("roce-lossy", {"pfc": "off", "ecn": "off", **buffer}, "none"),
        ("roce-pfc", {**lossless, "ecn": "off"}, "none"),
        marking,
    )
    variants: dict[str, Any] = {
        name: _variant("roce", cc, completed, {"switches": switches}) for name, switches, cc in roce
    }
    return {**variants, "ib": _variant("ib", "none", completed, {})}


def _variant(
    fabric: str, cc: str, checks: list[dict[str, Any]], more: dict[str, Any]
) -> dict[str, Any]:
    return {"fabric": fabric, **more, "hosts": {"nic": {"cc": cc}}, "verify": checks}
