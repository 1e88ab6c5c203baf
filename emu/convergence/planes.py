"""The control planes that are compared.

    static            every switch leaves a lost port at once, after `routing.convergence`
    adaptive          the same, and each packet takes the shortest queue
    bgp               FRR on every switch, with the timers of its profile for data centers
    bgp-fast          the shortest timers that FRR takes: keepalive 1 s, hold time 3 s
    bgp-bfd           data-center timers, and BFD with 50 ms and 3 packets
    opensm            InfiniBand's subnet manager, as the spec sets it
    opensm-adaptive   the same, and each packet takes the shortest queue of its shortest paths

Planes of the other fabric have the spec's topology, rates, NICs and settings, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emu.sensitivities.pinned import at_switches
from emu.spec.from_code import spec_from_mapping
from emu.spec.scenario import Spec
from emu.spec.settings import put

_REPLACED: Mapping[str, Any] = {
    "traffic": [],
    "faults": [],
    "verify": [],
    "capture": [],
    "compare": {},
    "recorded_routes": None,
    "payload": "elided",
}
"""Keys of the spec that a measurement replaces."""
_OF_ONE_FABRIC = ("kind", "gap", "sls", "paths")
"""Keys of a switch's `routing:` that the other fabric may not have."""


@dataclass(frozen=True, eq=False)
class Plane:
    """A control plane: a fabric, and settings of all its switches."""

    name: str
    fabric: str
    what: str
    """In words, for the page."""
    routing: Mapping[str, Any] = field(default_factory=dict)
    """Keys of a switch's `routing:`, with dots, and their values."""

    @property
    def is_bgp(self) -> bool:
        return self.routing.get("control_plane") == "bgp"

    @property
    def is_opensm(self) -> bool:
        return self.fabric == "ib"

    @property
    def is_adaptive(self) -> bool:
        return self.routing.get("kind") == "adaptive"


def _bgp(name: str, what: str, keepalive: str, hold: str, bfd: Any) -> Plane:
    timers = {"bgp.keepalive": keepalive, "bgp.hold": hold, "bgp.bfd": bfd}
    return Plane(name, "roce", what, {"control_plane": "bgp", **timers})


_PLANES = (
    Plane("static", "roce", "each switch changes its own routes", {"control_plane": "static"}),
    Plane(
        "adaptive",
        "roce",
        "the same; each packet takes the shortest queue",
        {"control_plane": "static", "kind": "adaptive"},
    ),
    _bgp("bgp", "FRR, keepalive 3 s, hold time 9 s", "3s", "9s", False),
    _bgp("bgp-fast", "FRR, keepalive 1 s, hold time 3 s", "1s", "3s", False),
    _bgp("bgp-bfd", "FRR with BFD, 50 ms x 3", "3s", "9s", {"interval": "50ms", "multiplier": 3}),
    Plane("opensm", "ib", "OpenSM"),
    Plane(
        "opensm-adaptive",
        "ib",
        "OpenSM; each packet takes the shortest queue",
        {"kind": "adaptive"},
    ),
)
PLANES: Mapping[str, Plane] = {plane.name: plane for plane in _PLANES}
"""By name."""


def spec_of(spec: Spec, plane: Plane, further: Mapping[str, Any] | None = None) -> Spec:
    """The spec's fabric under a control plane, without traffic. `further`: keys with dots and
    values, which come last. Raises SpecError."""
    data = spec.to_mapping()
    switches = data.setdefault("switches", {})
    dropped = ["control_plane", *([] if plane.is_bgp else ["bgp"])]
    dropped += [] if plane.fabric == spec.fabric else _OF_ONE_FABRIC
    for layer in (switches, *_layers(switches, "roles"), *_layers(switches, "nodes")):
        for key in dropped:
            layer.get("routing", {}).pop(key, None)
    settings: dict[str, Any] = {}
    for key, value in plane.routing.items():
        same = dict.fromkeys(spec.topology.build().switch, value)
        settings |= at_switches(spec, f"routing.{key}", same)
    for key, value in {**_REPLACED, "fabric": plane.fabric, **settings, **(further or {})}.items():
        put(data, key, value)
    return spec_from_mapping(data, source=f"--planes {plane.name}", folder=Path())


def _layers(switches: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    return list(switches.get(key, {}).values())
