"""The faults of a spec in the C core (fault.h), and their records.

Each process adds the faults of its part of the fabric: the shim those of cables and switches, the
process of the hosts those of NICs. A lost link is added in both, since both ends notice it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from emu._core import ffi, lib
from emu.bindings.c_values import text
from emu.bindings.parameters import CoreParameters, check
from emu.bindings.registry import with_parameters
from emu.errors import FabricError
from emu.measure.records import FaultRecord
from emu.spec.fault import Fault, fault_names
from emu.spec.fault.kind import LostLinks, OnHost, OnLine
from emu.spec.parameters import Parameters
from emu.spec.scenario import Spec
from topologies.graph import Port, Topology
from topologies.seeds import fault_seed


@dataclass(frozen=True)
class AddedFault:
    """A fault of the spec, and its parts in the core: one for each line."""

    name: str
    fault: Fault
    parts: tuple[Any, ...]

    def record(self) -> FaultRecord:
        """The record of its effects so far."""
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
    core: Any,
    spec: Spec,
    topology: Topology,
    index: dict[Port, int],
    places: Places,
    runs: Callable[[str], bool],
    numbers: Sequence[int],
) -> list[AddedFault]:
    """Adds the spec's faults to a fabric that is connected. Each begins at its time. `numbers`:
    what their random numbers are drawn with. `runs`: whether this process runs a node, where
    several run the fabric: the parts of a fault are where its nodes are."""
    added = []
    names = fault_names(spec.faults)
    for number, name, fault in zip(numbers, names, spec.faults, strict=True):
        if not fault.what.applies(spec):
            continue
        parts, ports = [], places.of(fault, spec, topology)
        for port in ports:
            if not runs(port.node):
                continue
            config = _CoreConfig(
                fault, fault.what.parameters(spec, port), fault_seed(spec.seed, number, index[port])
            )
            part = lib.fabric_add_fault(
                core, index[port], index[topology.peer[port]], config.struct
            )
            if part == ffi.NULL:
                raise FabricError(
                    f"the core has no memory for the fault {name}; make the fabric smaller"
                )
            parts.append(part)
        if ports:
            added.append(AddedFault(name, fault, tuple(parts)))
    return added


@dataclass(frozen=True)
class Places:
    """The places in this process that can have faults."""

    ports: frozenset[Port]
    """Ports whose cable has at least one end in this process."""
    has_lines: bool
    """Whether this process emulates cables and switches."""
    has_nics: bool
    receivers: frozenset[Port] | None = None
    """On the exact clock the ports of this process: a fault of a line is where the line ends. None:
    such faults are where lines are emulated."""

    def of(self, fault: Fault, spec: Spec, topology: Topology) -> list[Port]:
        """The ports at which this process has the fault."""
        ports = fault.what.ports(spec, topology)
        if isinstance(fault.what, LostLinks):
            return [port for port in ports if port in self.ports]
        if isinstance(fault.what, OnLine) and self.receivers is not None:
            return [port for port in ports if topology.peer[port] in self.receivers]
        is_here = self.has_nics if isinstance(fault.what, OnHost) else self.has_lines
        return list(ports) if is_here else []


@cache
def core_faults() -> dict[str, frozenset[str]]:
    """The core's kinds of faults, and the names of the parameters of each."""
    return with_parameters(lib.fault_kind, lib.fault_parameter)


class _CoreConfig:
    """A `struct fault_config` and the memory that it points to."""

    def __init__(self, fault: Fault, parameters: Parameters, seed: int) -> None:
        kind = fault.what.core or fault.kind
        known = core_faults()
        check("fault", "emu/core/fault/fault", kind, parameters, known, complete=False)
        self._parameters = CoreParameters(parameters)
        self.struct = ffi.new("struct fault_config *")
        self.struct.kind = text(kind)
        self.struct.at_ps = fault.at_ps
        self.struct.for_ps = fault.for_ps or 0
        self.struct.seed = seed
        self.struct.parameters = self._parameters.array
        self.struct.parameter_count = len(parameters)
