"""Values that a spec leaves to the emulator: what it works out, and from what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emu.spec.finding import KeyPath
from emu.spec.headroom import headroom_of
from emu.spec.scenario import Spec
from emu.units import write_rate, write_size, write_time
from topologies.graph import Port


def derived(spec: Spec, port: Port | None, path: KeyPath, value: Any) -> tuple[str, str] | None:
    """The value of a key and what it follows from; None for a key that says it itself."""
    work_out = _DERIVED.get(tuple(map(str, path))) if value == "auto" else None
    return work_out(spec, port) if work_out else None


def _headroom(spec: Spec, port: Port | None) -> tuple[str, str]:
    if port is None:
        return "auto", "default"
    cable = spec.topology.build().cable[port]
    return (
        f"auto: {write_size(headroom_of(spec, port))}",
        f"derived from {write_rate(cable.rate_bps)}, a cable of {write_time(cable.delay_ps)}, "
        f"packets of {spec.largest_mtu} bytes and the response time of the far end",
    )


def _switching(spec: Spec, port: Port | None) -> tuple[str, str]:
    way = "cut-through" if spec.fabric == "ib" else "store-and-forward"
    return f"auto: {way}", f"derived from fabric: {spec.fabric}"


def _pause_response(spec: Spec, port: Port | None) -> tuple[str, str]:
    return "auto: 0s", "default; automatic headroom allows for the response time of 802.3"


_DERIVED: dict[tuple[str, ...], Callable[[Spec, Port | None], tuple[str, str]]] = {
    ("switches", "pfc", "headroom"): _headroom,
    ("switches", "switching"): _switching,
    ("switches", "pause_response"): _pause_response,
    ("hosts", "nic", "pause_response"): _pause_response,
}
