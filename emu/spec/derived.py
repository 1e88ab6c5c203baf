"""Values that the emulator derives for a switch, a port or a host, with the reasons.

    >>> for own in derived(spec, spec.topology.build().port_named["leaf1:h1"]): print(own)
    switches.ecn.kmin: 212KB (a quarter of what the port may hold (...), so that ...)

`Spec.port`, `Spec.switch` and `Spec.host` have the same values; this module is for printing them
(`emu explain KEY --spec FILE`). `late_curves` finds ports that pause before they mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emu.spec.diagnostic import dotted
from emu.spec.headroom import headroom_of
from emu.spec.merge import inherit
from emu.spec.scenario import Spec
from emu.spec.switch import Curve, Ecn, Pfc
from emu.spec.thresholds import curve_of
from emu.units import write_rate, write_size, write_time
from topologies.graph import Port

Section = tuple[str, ...]
"""The path of a curve below `switches:`."""

_THRESHOLDS = "rate, cable, MTU and buffer"
_NO_RESPONSE = "automatic headroom allows for the response time of 802.3"


@dataclass(frozen=True)
class Derived:
    """A key that the spec does not give, and its derived value, written as in a spec."""

    key: str
    value: str
    reason: str
    inputs: str = ""
    """The settings that the value is derived from; empty: the value is the same everywhere."""

    def __str__(self) -> str:
        return f"{self.key}: {self.value} ({self.reason})"

    @property
    def origin(self) -> str:
        """The text of `emu explain`."""
        return f"derived from {self.inputs}: {self.reason}" if self.inputs else self.reason


def derived(spec: Spec, port: Port) -> tuple[Derived, ...]:
    """The derived values of a port and its switch."""
    return (*_of_switch(spec, port.node), *_of_port(spec, port))


def derived_of_switch(spec: Spec, switch: str) -> tuple[Derived, ...]:
    """The derived values that all ports of a switch share."""
    return tuple(_of_switch(spec, switch))


def derived_of_host(spec: Spec, host: str) -> tuple[Derived, ...]:
    return tuple(_of_host(spec, host))


def _of_switch(spec: Spec, switch: str) -> Iterator[Derived]:
    settings = spec.given_switch(switch)
    if settings.latency_given is None:
        latency_ps, why = spec.switch_latency(switch)
        inputs = "fabric" if spec.fabric_kind.is_ethernet else "fabric and rate"
        yield Derived("switches.latency", write_time(latency_ps), why, inputs)
    if settings.switching == "auto":
        way = "cut-through" if spec.cuts_through(switch) else "store-and-forward"
        why = f"the default of fabric {spec.fabric}"
        yield Derived("switches.switching", way, why, "fabric")


def _of_port(spec: Spec, port: Port) -> Iterator[Derived]:
    if spec.fabric_kind.uses_credits:
        return
    settings = spec.given_port(port)
    if settings.pause_response_ps is None:
        yield Derived("switches.pause_response", "0s", f"default: {_NO_RESPONSE}")
    if settings.pfc is not None:
        yield from _of_pfc(spec, port, settings.pfc)
    if settings.ecn is not None:
        yield from _of_ecn(spec, port, settings.ecn)


def _of_pfc(spec: Spec, port: Port, pfc: Pfc) -> Iterator[Derived]:
    limit = spec.port_scale(port).limit
    if "xoff" not in pfc.model_fields_set:
        is_now = f"{write_size(limit.size_bytes)} for a port that is busy alone"
        why = f"a share of the free pool: {is_now}"
        yield Derived("switches.pfc.xoff", str(pfc.xoff), why, "buffer and headroom")
    if pfc.xoff.size_bytes and pfc.xon_given is None:
        yield Derived("switches.pfc.xon", write_size(pfc.xon_bytes), "two thirds of xoff", "xoff")
    if pfc.headroom_bytes is None:
        yield _headroom(spec, port)


def _headroom(spec: Spec, port: Port) -> Derived:
    cable = spec.topology.build().cable[port]
    return Derived(
        "switches.pfc.headroom",
        write_size(headroom_of(spec, port)),
        "all bytes that may arrive after a pause frame is sent",
        f"{write_rate(cable.rate_bps)}, a cable of {write_time(cable.delay_ps)}, "
        f"packets of {spec.largest_mtu} bytes and the response time of the far end",
    )


def _of_ecn(spec: Spec, port: Port, ecn: Ecn) -> Iterator[Derived]:
    yield from _of_curve(spec, port, None, ecn)
    for queue, own in ecn.queues.items():
        if own is not None:
            given = inherit(inherit(Curve(), ecn), own)
            yield from _of_curve(spec, port, queue, given)


def _of_curve(spec: Spec, port: Port, queue: int | None, given: Curve) -> Iterator[Derived]:
    """The derived values of the curve of a queue; None: of the queues without one of their own."""
    section = dotted(("switches", *_section(queue)))
    thresholds = curve_of(given, spec.curve_scale(port, queue))
    is_given = (given.kmin_given is not None, given.kmax_given is not None)
    for name, own, known in zip(("kmin", "kmax"), thresholds, is_given, strict=True):
        if not known:
            yield Derived(f"{section}.{name}", write_size(own.size_bytes), own.reason, _THRESHOLDS)


def _of_host(spec: Spec, host: str) -> Iterator[Derived]:
    if not spec.fabric_kind.is_ethernet:
        return
    nic = spec.host(host).nic
    if nic.pause_response_ps is None:
        yield Derived("hosts.nic.pause_response", "0s", f"default: {_NO_RESPONSE}")
    for key, dscp in spec.dscps_of_preset(host).items():
        topology = spec.topology.build()
        preset = spec.given_switch(topology.peer[topology.ports[host][0]].node).preset
        why = "the preset of the host's switch has a class for it"
        yield Derived(f"hosts.nic.{key}", str(dscp), why, f"preset {preset}")


def late_curves(spec: Spec, port: Port) -> dict[Section, Curve]:
    """The curves of lossless queues with which the port pauses its sender before it marks a packet.
    The keys are their sections: `("ecn",)`, or `("ecn", "queues", "3")`."""
    settings = spec.port(port)
    if settings.pfc is None or settings.ecn is None:
        return {}
    limit_bytes = spec.port_scale(port).limit.size_bytes
    curves = {
        _section(queue if queue in settings.ecn.queues else None): settings.ecn.curve(queue)
        for queue in sorted(settings.lossless_queues)
    }
    return {
        section: own
        for section, own in curves.items()
        if own is not None and own.kmin_bytes > limit_bytes
    }


def _section(queue: int | None) -> Section:
    """The section of a queue's own curve; None: of the curve of all other queues."""
    return ("ecn",) if queue is None else ("ecn", "queues", str(queue))
