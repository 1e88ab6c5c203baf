"""A spec's faults in the C core (fault.h), and what they did.

The part of a fabric that is in this process gets the faults that happen there:
cables and switches are in the shim, a host's NIC where the hosts are, and a lost
link is noticed at both of its ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from emu._core import ffi, lib
from emu.errors import FabricError
from emu.measure.recording import FaultRecord
from emu.spec.classes import DSCPS, PRIORITIES
from emu.spec.fault import (
    Choosing,
    Delay,
    Fault,
    FlowControl,
    IgnoredCnps,
    LinkDown,
    LinkFlap,
    OnHost,
    OnLine,
    OnPorts,
    PauseStorm,
    Reordering,
    SlowReceiver,
    SmallHeadroom,
    SwitchDown,
    WrongEcn,
    WrongMap,
    fault_names,
)
from emu.spec.misconfiguration import (
    OF_ROCE,
    curve_with,
    headroom_with,
    hears_cnps,
    map_with,
    ports_changed,
)
from emu.spec.outages import lost_links
from emu.spec.scenario import Spec
from emu.spec.switch import Ecn
from topologies.graph import Port, Topology
from topologies.seeds import fault_seed

_KINDS = {
    "link-down": lib.FAULT_LINK_DOWN,
    "link-flap": lib.FAULT_LINK_FLAP,
    "switch-down": lib.FAULT_LINK_DOWN,
    "loss": lib.FAULT_LOSS,
    "corruption": lib.FAULT_CORRUPTION,
    "duplication": lib.FAULT_DUPLICATION,
    "reordering": lib.FAULT_REORDERING,
    "delay": lib.FAULT_DELAY,
    "flow-control": lib.FAULT_FLOW_CONTROL,
    "pause-storm": lib.FAULT_PAUSE_STORM,
    "slow-receiver": lib.FAULT_SLOW_RECEIVER,
    "wrong-map": lib.FAULT_WRONG_MAP,
    "small-headroom": lib.FAULT_SMALL_HEADROOM,
    "wrong-ecn": lib.FAULT_WRONG_ECN,
    "ignored-cnps": lib.FAULT_IGNORED_CNPS,
}


_STRANGE = {"ib": (PauseStorm, *OF_ROCE), "roce": (FlowControl,)}


def is_strange(fault: Fault, spec: Spec) -> bool:
    """Whether it is one of what the fabric, or the NIC, does not have, inherited by a variant."""
    what = fault.what
    deaf = isinstance(what, IgnoredCnps) and not hears_cnps(spec, what.host)
    return deaf or isinstance(what, _STRANGE[spec.fabric])


@dataclass(frozen=True)
class AddedFault:
    """A fault of the spec, and the parts of it that the core has: one for each line."""

    name: str
    fault: Fault
    parts: tuple[Any, ...]

    def record(self) -> FaultRecord:
        """What it did so far."""
        counts = [lib.fault_counted(part) for part in self.parts]
        return FaultRecord(
            name=self.name,
            kind=self.fault.kind,
            place=self.fault.what.place,
            at_ns=self.fault.at_ps // 1000,
            end_ns=None if self.fault.end_ps is None else self.fault.end_ps // 1000,
            packets_seen=sum(count.packets_seen for count in counts),
            hits=sum(count.hits for count in counts),
            packets_dropped=sum(count.packets_dropped for count in counts),
        )


def add_faults(
    core: Any, spec: Spec, topology: Topology, index: dict[Port, int], places: Places
) -> list[AddedFault]:
    """Gives a fabric, whose cables are laid, the spec's faults; they begin in their time."""
    added = []
    for number, (name, fault) in enumerate(zip(fault_names(spec.faults), spec.faults, strict=True)):
        if is_strange(fault, spec):
            continue
        parts = []
        for port in places.of(fault, spec, topology):
            config = _config(fault, spec, port)
            config.seed = fault_seed(spec.seed, number, index[port])
            part = lib.fabric_add_fault(core, index[port], index[topology.peer[port]], config)
            if part == ffi.NULL:
                raise FabricError("there is no memory for a fault; make the fabric smaller")
            parts.append(part)
        if parts:
            added.append(AddedFault(name, fault, tuple(parts)))
    return added


@dataclass(frozen=True)
class Places:
    """Where faults can be in this process."""

    ports: frozenset[Port]
    """Ports with a cable that is here, whoever owns them."""
    has_lines: bool
    """Whether cables, and the switches at them, are emulated here."""
    has_nics: bool

    def of(self, fault: Fault, spec: Spec, topology: Topology) -> Iterator[Port]:
        """The ports at which a fault is, as far as they are here."""
        what = fault.what
        if isinstance(what, OnHost):
            yield from topology.ports[what.host] if self.has_nics else ()
            return
        if isinstance(what, OnLine):
            port = topology.port_named[what.cable]
            yield from _lines(what, port, topology.peer[port]) if self.has_lines else ()
        elif isinstance(what, OnPorts):
            yield from ports_changed(what, spec, topology) if self.has_lines else ()
        else:
            yield from (port for port in lost_links(fault, topology) if port in self.ports)


def _lines(what: OnLine, out: Port, into: Port) -> Iterable[Port]:
    """The ports out of whose lines the fault is."""
    return {"out": (out,), "in": (into,), "both": (out, into)}[what.direction]


def _config(fault: Fault, spec: Spec, port: Port) -> Any:
    """The fault as a `struct fault_config *`, for one of its ports."""
    config = ffi.new("struct fault_config *")
    config.kind = _KINDS[fault.kind]
    config.at_ps = fault.at_ps
    config.for_ps = fault.for_ps or 0
    match fault.what:
        case LinkDown() | SwitchDown() | IgnoredCnps():
            pass
        case LinkFlap() as flap:
            config.period_ps, config.down_ps = flap.period_ps, flap.down_ps
        case Delay() as delay:
            config.by_ps = delay.by_ps
        case PauseStorm() as storm:
            config.priority = storm.priority
        case SlowReceiver() as slow:
            config.rate_bps, config.buffer_bytes = slow.rate_bps, slow.buffer_bytes
        case FlowControl() as updates:
            config.damages = updates.effect == "damaged"
            config.every = updates.every or 0
            config.probability_2_32 = round((updates.probability or 0) * 2**32)
        case Choosing() as choosing:
            _choose(config, choosing)
        case OnPorts() as tuning:
            _tune(config, tuning, spec, port)
    return config


def _tune(config: Any, what: OnPorts, spec: Spec, port: Port) -> None:
    """What the port has meanwhile."""
    match what:
        case WrongMap():
            classes = map_with(what, spec.port(port).classes)
            config.of_dscp = list(map(classes.priority_of_dscp, range(DSCPS)))
            config.of_pcp = list(map(classes.priority_of_pcp, range(PRIORITIES)))
        case SmallHeadroom():
            config.headroom_bytes = headroom_with(what, spec, port)
        case WrongEcn():
            _set_curves(config, what, spec.port(port).ecn)


def _set_curves(config: Any, wrong: WrongEcn, ecn: Ecn | None) -> None:
    """Of all queues: one that does not mark has none."""
    assert ecn is not None, "a fault of ECN is at ports that mark"
    for queue in range(PRIORITIES):
        curve = ecn.curve(queue)
        if curve is not None:
            curve = curve_with(wrong, curve)
            config.kmin_bytes[queue] = curve.kmin_bytes
            config.kmax_bytes[queue] = curve.kmax_bytes
            config.pmax_2_32[queue] = curve.pmax_2_32


def _choose(config: Any, choosing: Choosing) -> None:
    """Which packets are hit, and how much later they arrive."""
    if choosing.every is not None:
        config.every = choosing.every
    elif choosing.psn is not None:
        config.by_psn = True
        config.psn_count = len(choosing.psn)
        config.psns[0 : len(choosing.psn)] = list(choosing.psn)
    else:
        config.probability_2_32 = round((choosing.probability or 0) * 2**32)
    if isinstance(choosing, Reordering):
        config.by_ps = choosing.by_ps
