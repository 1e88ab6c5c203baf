"""Options -> the keys of a spec that has been tested: it validates, and ends within its limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from emu.errors import SpecError, UsageError
from emu.fabric_kind import FABRIC_KINDS, INFINIBAND, ROCE
from emu.measure.bound import batches_of, fabric_of, last_finish_bound
from emu.spec.from_code import spec_from_mapping
from emu.spec.headroom import reserved_of
from emu.spec.host import Nic
from emu.spec.model import Spec, SwitchSpec
from emu.spec.presets import PRESETS
from emu.spec.quantities import Length, Rate, Size
from emu.starter.options import StarterOptions
from emu.starter.shapes import topology_of
from emu.units import (
    PS_PER_NS,
    PS_PER_S,
    ack_timeout_ps,
    round_up,
    write_rate,
    write_size,
    write_time,
)

RATE: TypeAdapter[int] = TypeAdapter(Rate)
LENGTH: TypeAdapter[int] = TypeAdapter(Length)
SIZE: TypeAdapter[int] = TypeAdapter(Size)
"""The types of options, which are those of keys in specs."""

_LOAD = 0.3
"""The share of a host's link that background load offers."""
_DCQCN = "dcqcn-nvidia"
"""A NIC's default parameters; the steps of DCQCN's paper are for links of 40 Gbit/s."""
_SWIFT = "swift"
"""The control for switches that drop: it acts on delay and needs neither marks nor pauses."""
_BY_ACKS = ("dctcp", _SWIFT)
"""The controls that only act on ACKs, which READ responses do not have."""
_BLOCK = "64KiB"
_LOSSY_TIMEOUT = 8
_MOST_DOUBLED = 11
_ROOM = 4
"""The time limit as a multiple of the time at the rate of the links."""
_MOST_WITH_PAYLOAD = 1024
"""The most hosts of a spec whose messages carry their bytes."""
REASONS = {
    ("payload",): "Here elided: so many hosts need the virtual clock, and their bytes much memory.",
    ("hosts", "nic", "timeout"): "Here about 1 ms, or as long as a full buffer takes to drain: "
    "switches that drop may drop the last packet of a message, which the timer alone notices; "
    "adaptive retransmission comes to about the same.",
    ("topology", "ring"): "Routes go round it, so that pauses may form a cyclic buffer "
    "dependency: a deadlock, which a run reports with its fixes.",
    ("traffic", "storage", "in_capsule"): "Here whole blocks: Swift and DCTCP slow down by "
    "ACKs alone, and the data of a READ have none.",
    ("subnet", "roots"): "OpenSM cannot find roots in a ring, and without roots paths may form a "
    "credit loop.",
    ("compare", "roce-lossy"): "Neither PFC nor ECN: switches drop. Swift needs neither, and a "
    "short timer finds messages whose last packet was lost.",
}
"""The text after a key's meaning, or above a variant."""


def starter_data(options: StarterOptions) -> dict[str, Any]:
    """The keys of a spec. Raises UsageError if no spec fulfils the options."""
    data = _asked_for(options)
    data["switches"] |= _enough_buffer(data, options)
    spec = _tried(data)
    if (code := _timer(spec)) != spec.host(_sender(spec)).nic.timeout:
        data["hosts"]["nic"]["timeout"] = code
    if (limit_ps := _time_needed_ps(spec)) > spec.time_limit_ps:
        data["time_limit"] = write_time(limit_ps)
    data["capture"] = [_port_to_first_host(spec)]
    data["verify"] = _checks(spec, options)
    if options.compare:
        data["compare"] = _variants(data, options)
        _set_timers(data["compare"], _tried(data).variants())
    _tried(data)
    return {key: value for key, value in data.items() if value}


def _tried(data: dict[str, Any]) -> Spec:
    try:
        return _spec(data)
    except SpecError as error:
        raise UsageError(f"these options make no valid spec:\n{error}") from None


def _spec(data: dict[str, Any]) -> Spec:
    return spec_from_mapping(dict(data), source="the spec", folder=Path())


def _asked_for(options: StarterOptions) -> dict[str, Any]:
    link = {"rate": options.rate, "length": options.length}
    tiers = ("host",) if options.topology == "fat-tree" else ("host", "fabric")
    hosts: dict[str, Any] = {"nic": _nic(options)}
    if options.topology == "rail":
        hosts = {"gpus": options.gpus or 8, **hosts}
    return {
        "name": options.name,
        "fabric": options.fabric,
        "seed": options.seed,
        **({"payload": "elided"} if options.hosts > _MOST_WITH_PAYLOAD else {}),
        "topology": {**topology_of(options), "links": dict.fromkeys(tiers, link)},
        "subnet": _subnet(options),
        "switches": _switches(options),
        "hosts": hosts,
        "traffic": [_traffic(options)],
    }


def _subnet(options: StarterOptions) -> dict[str, Any]:
    """The root switch of up/down routing for a ring, in which OpenSM finds none by itself."""
    is_managed = options.kind.has_subnet_manager or options.compare
    return {"roots": ["ring1"]} if is_managed and options.topology == "ring" else {}


def _switches(options: StarterOptions) -> dict[str, Any]:
    if options.kind.uses_credits:
        return {}
    if options.preset:
        return {"preset": options.preset}
    return {"pfc": "on", "ecn": "on"} if options.lossless else {}


def _nic(options: StarterOptions) -> dict[str, Any]:
    return {"mtu": 4096, "cc": _control(options), **_dscp(options)}


def _control(options: StarterOptions) -> str:
    return options.cc or _usual_control(options)


def _usual_control(options: StarterOptions) -> str:
    if options.kind.uses_credits:
        return "none"
    if options.preset == "dctcp":
        return "dctcp"
    return _DCQCN if options.lossless or options.preset else _SWIFT


def _dscp(options: StarterOptions) -> dict[str, Any]:
    """A lossless DSCP of the preset, if the NICs' default DSCP is lossy there."""
    preset = PRESETS.get(options.preset or "")
    if preset is None or preset.pfc is None or not options.kind.is_ethernet:
        return {}
    lossless = preset.pfc.priorities
    if preset.classes.priority_of_dscp(26) in lossless:
        return {}
    return {"dscp": preset.classes.dscp_of_priority(lossless[0])}


# --- traffic ---


def _traffic(options: StarterOptions) -> dict[str, Any]:
    own = PATTERNS[options.pattern](options)
    size = {} if options.pattern in ("background", "storage") else {"size": options.size or "1MB"}
    if options.pattern == "storage":
        size = {"block": options.size or _BLOCK}
    elif options.size and not size:
        raise UsageError("--size is not for background load, whose sizes are measured ones")
    return {"name": options.pattern, "pattern": options.pattern, **own, **size}


def _to_one(options: StarterOptions) -> dict[str, Any]:
    return {"from": "all[1:]", "to": "all[0]"}


def _from_one(options: StarterOptions) -> dict[str, Any]:
    return {"from": "all[0]", "to": "all[1:]"}


def _halves(options: StarterOptions) -> dict[str, Any]:
    half = options.hosts // 2
    return {"from": f"all[:{half}]", "to": f"all[{half}:{2 * half}]"}


def _among(options: StarterOptions) -> dict[str, Any]:
    return {"among": "all"}


def _hot_spot(options: StarterOptions) -> dict[str, Any]:
    return {"among": "all", "hot": "all[0]", "count": 10}


def _background(options: StarterOptions) -> dict[str, Any]:
    offered = round(RATE.validate_python(options.rate) * _LOAD)
    return {"among": "all", "sizes": "websearch", "rate": write_rate(offered), "count": 100}


def _storage(options: StarterOptions) -> dict[str, Any]:
    keys = {**_halves(options), "count": 100, "depth": 8, "reads": "70%", "media": "80us"}
    if options.compare or _control(options) in _BY_ACKS:
        keys["in_capsule"] = options.size or _BLOCK
    return keys


PATTERNS: dict[str, Callable[[StarterOptions], dict[str, Any]]] = {
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


def _enough_buffer(data: dict[str, Any], options: StarterOptions) -> dict[str, Any]:
    """The buffer of an Ethernet switch, with PFC if a variant has it. None for presets with their
    own buffer."""
    if FABRIC_KINDS[data["fabric"]].uses_credits or _of_preset(options, "buffer_bytes"):
        return {}
    return _buffer_with_pfc(data) if options.compare else _doubled_buffer(data)


def _buffer_with_pfc(data: dict[str, Any]) -> dict[str, Any]:
    """The buffer that PFC needs, even if the fabric itself has no PFC."""
    return _doubled_buffer({**data, "fabric": ROCE.name, "switches": {"pfc": "on"}})


def _of_preset(options: StarterOptions, field: str) -> bool:
    """Whether the chosen preset gives the key."""
    preset = PRESETS.get(options.preset or "")
    return preset is not None and field in preset.model_fields_set


def _doubled_buffer(data: dict[str, Any]) -> dict[str, Any]:
    """The default buffer, doubled until half of it is not reserved. The largest, if even that is
    not enough, or if the spec is invalid with any."""
    *sizes, largest = [SwitchSpec().buffer_bytes << doubled for doubled in range(_MOST_DOUBLED)]
    spec = _with_buffer(data, largest)
    if spec is None:
        return {"buffer": write_size(largest)}
    reserved = max(reserved_of(spec, name) for name in spec.topology.build().switch)
    enough = (size for size in sizes if size >= 2 * reserved and _with_buffer(data, size))
    return {"buffer": write_size(next(enough, largest))}


def _with_buffer(data: dict[str, Any], size: int) -> Spec | None:
    """None: there is no valid spec with such a buffer."""
    try:
        return _spec({**data, "switches": {**data["switches"], "buffer": write_size(size)}})
    except SpecError:
        return None


def _time_needed_ps(spec: Spec) -> int:
    """The time limit: a multiple of the time that the links need."""
    topology, workload = spec.topology.build(), spec.workload()
    batches = batches_of(workload, workload.message_flows)
    bound = last_finish_bound(topology, batches, fabric_of(spec, topology))
    return 0 if bound is None else round_up(_ROOM * bound.last_finish_ns) * PS_PER_NS


def _port_to_first_host(spec: Spec) -> str:
    topology = spec.topology.build()
    host = topology.hosts[0].name
    return topology.port_name[topology.peer[topology.ports[host][0]]]


def _checks(spec: Spec, options: StarterOptions) -> list[dict[str, Any]]:
    """The checks: all messages arrive, and a lossless priority loses nothing."""
    checks: list[dict[str, Any]] = [{"completed": "all"}]
    if not spec.fabric_kind.uses_credits and not _drops(spec):
        checks.append({"lossless": {"priority": spec.priority(_sender(spec), None)}})
    return checks


def _sender(spec: Spec) -> str:
    return spec.traffic[0].senders[0]


def _drops(spec: Spec) -> bool:
    """Whether a switch may drop packets of the hosts."""
    if spec.fabric_kind.uses_credits:
        return False
    host, topology = _sender(spec), spec.topology.build()
    pfc = spec.port(topology.peer[topology.ports[host][0]]).pfc
    return pfc is None or spec.priority(host, None) not in pfc.priorities


def _timer(spec: Spec) -> int:
    """The default timer, or, if switches drop, a short one that is longer than a full buffer takes
    to drain."""
    if not _drops(spec):
        return Nic().timeout
    topology = spec.topology.build()
    drained_ps = max(
        spec.switch(port.node).buffer_bytes * 8 * PS_PER_S // cable.rate_bps
        for port, cable in topology.cable.items()
        if port.node in topology.switch
    )
    codes = range(_LOSSY_TIMEOUT, Nic().timeout)
    return next((code for code in codes if ack_timeout_ps(code) >= drained_ps), Nic().timeout)


def _set_timers(variants: dict[str, Any], specs: Mapping[str, Spec]) -> None:
    for name, spec in specs.items():
        if (code := _timer(spec)) != spec.host(_sender(spec)).nic.timeout:
            variants[name]["hosts"]["nic"]["timeout"] = code


def _variants(data: dict[str, Any], options: StarterOptions) -> dict[str, Any]:
    """The four fabrics of the shipped comparisons. A preset that marks for DCTCP uses DCTCP."""
    completed = [{"completed": "all"}]
    buffer = _buffer_with_pfc(data) if options.kind.uses_credits else {}
    lossless = {"preset": options.preset} if _of_preset(options, "pfc") else {"pfc": "on", **buffer}
    marking = ("roce-dcqcn", {**lossless, "ecn": "on"}, _DCQCN)
    if options.preset == "dctcp":
        marking = ("roce-dctcp", {"preset": "dctcp"}, "dctcp")
    roce = (
        ("roce-lossy", {"pfc": "off", "ecn": "off", **buffer}, _SWIFT),
        ("roce-pfc", {**lossless, "ecn": "off"}, "none"),
        marking,
    )
    variants: dict[str, Any] = {
        name: _variant(ROCE.name, cc, completed, {"switches": switches})
        for name, switches, cc in roce
    }
    return {**variants, "ib": _variant(INFINIBAND.name, "none", completed, {})}


def _variant(
    fabric: str, cc: str, checks: list[dict[str, Any]], more: dict[str, Any]
) -> dict[str, Any]:
    return {"fabric": fabric, **more, "hosts": {"nic": {"cc": cc}}, "verify": checks}
