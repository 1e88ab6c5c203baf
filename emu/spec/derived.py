"""What a spec leaves to the emulator at a switch's port, worked out, each with its reason.

    >>> for own in derived(spec, spec.topology.build().port_named["leaf1:h1"]): print(own)
    switches.ecn.kmin: 212KB (a quarter of what the port may hold (...), so that ...)

`Spec.port` and `Spec.switch` have the same values; this is for whoever wants to tell them.
`pauses_come_first` is the rule that marks must come before pauses: at this port, of this curve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emu.spec.headroom import headroom_of
from emu.spec.merge import inherit
from emu.spec.scenario import Spec
from emu.spec.switch import Curve, Ecn, Pfc
from emu.spec.thresholds import curve_of
from emu.units import write_size, write_time
from topologies.graph import Port


@dataclass(frozen=True)
class Derived:
    """A key of the spec that was not given; `value` is as it would be written."""

    key: str
    value: str
    reason: str

    def __str__(self) -> str:
        return f"{self.key}: {self.value} ({self.reason})"


def derived(spec: Spec, port: Port) -> tuple[Derived, ...]:
    """Nothing of what the spec itself says; on InfiniBand the latency alone."""
    return tuple(_derived(spec, port))


def _derived(spec: Spec, port: Port) -> Iterator[Derived]:
    said = spec.given_port(port)
    if spec.given_switch(port.node).latency_given is None:
        latency_ps, why = spec.switch_latency(port.node)
        yield Derived("switches.latency", write_time(latency_ps), why)
    if spec.fabric == "ib":
        return
    if said.pfc is not None:
        yield from _of_pfc(spec, port, said.pfc)
    if said.ecn is not None:
        yield from _of_ecn(spec, port, said.ecn)


def _of_pfc(spec: Spec, port: Port, pfc: Pfc) -> Iterator[Derived]:
    limit = spec.port_scale(port).limit
    if "xoff" not in pfc.model_fields_set:
        is_now = f"{write_size(limit.size_bytes)} for a port that is busy alone"
        yield Derived("switches.pfc.xoff", str(pfc.xoff), f"a share of the free pool: {is_now}")
    if pfc.xoff.size_bytes and pfc.xon_given is None:
        yield Derived("switches.pfc.xon", write_size(pfc.xon_bytes), "two thirds of xoff")
    if pfc.headroom_bytes is None:
        why = "rate, cable, MTU and the neighbour's response time: what comes after a pause"
        yield Derived("switches.pfc.headroom", write_size(headroom_of(spec, port)), why)


def _of_ecn(spec: Spec, port: Port, ecn: Ecn) -> Iterator[Derived]:
    yield from _of_curve(spec, port, "switches.ecn", ecn)
    for queue, own in ecn.queues.items():
        if own is not None:
            given = inherit(inherit(Curve(), ecn), own)
            yield from _of_curve(spec, port, f"switches.ecn.queues.{queue}", given)


def _of_curve(spec: Spec, port: Port, section: str, given: Curve) -> Iterator[Derived]:
    kmin, kmax = curve_of(given, spec.port_scale(port))
    if given.kmin_given is None:
        yield Derived(f"{section}.kmin", write_size(kmin.size_bytes), kmin.reason)
    if given.kmax_given is None:
        yield Derived(f"{section}.kmax", write_size(kmax.size_bytes), kmax.reason)


def pauses_come_first(spec: Spec, port: Port, curve: Curve) -> bool:
    """Whether a port pauses its sender before a queue of this curve marks its first packet."""
    if spec.port(port).pfc is None:
        return False
    return curve.kmin_bytes > spec.port_scale(port).limit.size_bytes
