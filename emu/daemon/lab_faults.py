"""All faults of a lab in the background: those of cables and switches are in the shim, those of
hosts in their NICs."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace

from emu.daemon.lab_clock import LabClock
from emu.daemon.messages import FaultSnapshot
from emu.daemon.nics import Nics
from emu.errors import UsageError
from emu.lab.ipc.queries import ClearFault, FaultList, FaultStatus, ListFaults, SetFault
from emu.lab.ipc.rpc import RpcClient
from emu.spec.diagnostic import unknown_name
from emu.spec.fault import Fault, fault_names, share_a_setting
from emu.spec.fault.kind import OnHost
from emu.spec.outages import lost_links
from emu.spec.scenario import Spec


class LabFaults:
    """Lists, sets and clears a lab's faults. Several threads may call it."""

    def __init__(self, spec: Spec, shim: RpcClient, nics: Nics, clock: LabClock) -> None:
        self._spec, self._topology = spec, spec.topology.build()
        self._shim = shim
        self._nics = nics
        self._clock = clock
        self._changing = threading.Lock()
        self._defined = dict(zip(fault_names(spec.faults), spec.faults, strict=True))
        """Every present or former fault, by name."""

    def listed(self) -> FaultList:
        """All faults: first those of cables and switches, then those of NICs."""
        in_shim = self._shim.ask(ListFaults())
        faults = {one.name: one for one in in_shim.faults}
        for one in self._nics.faults():
            faults[one.name] = _together(faults[one.name], one) if one.name in faults else one
        return FaultList(tuple(faults.values()), in_shim.deadlocks)

    def set(self, query: SetFault) -> FaultList:
        """Sets a fault. Raises UsageError if it conflicts with another fault."""
        fault = Fault.model_validate(query.fault)
        with self._changing, self._clock.at_one_instant():
            by_name = {one.name: one for one in self.listed().faults}
            self._set(query, fault, by_name)
            return self.listed()

    def clear(self, query: ClearFault) -> FaultList:
        """Clears a fault. Raises UsageError if there is no such fault."""
        with self._changing, self._clock.at_one_instant():
            known = [one.name for one in self.listed().faults]
            if query.name not in known:
                raise UsageError(unknown_name("fault", query.name, known))
            self._clear(query.name)
            return self.listed()

    def snapshot(self, status: FaultStatus) -> FaultSnapshot:
        """The fault with the cables that it takes down."""
        fault = self._defined.get(status.name)
        if fault is None:
            return FaultSnapshot(status)
        lost = {
            self._topology.cable[port] for port in lost_links(fault, self._spec, self._topology)
        }
        cables = sorted(self._topology.port_name[cable.a] for cable in lost)
        return FaultSnapshot(status, tuple(cables), fault.to_mapping())

    def _set(self, query: SetFault, fault: Fault, by_name: dict[str, FaultStatus]) -> None:
        lasting = {
            name: one
            for name, one in by_name.items()
            if one.state != "over" or self._nics.fault_comes_again(name)
        }
        if query.name in lasting:
            raise UsageError(
                f"there is a fault {query.name!r} already; clear it, or name this one differently"
            )
        check_settings(fault, lasting.values())
        if query.name in by_name:
            self._clear(query.name)
        self._defined[query.name] = fault
        if self._nics.may_have(fault):
            self._nics.set_fault(query.name, fault)
        if not isinstance(fault.what, OnHost):
            self._shim.ask(SetFault(query.name, fault.to_mapping()))

    def _clear(self, name: str) -> None:
        if self._nics.has_fault(name):
            self._nics.clear_fault(name)
        if not isinstance(self._defined[name].what, OnHost):
            self._shim.ask(ClearFault(name))


def _together(in_shim: FaultStatus, in_nics: FaultStatus) -> FaultStatus:
    """A fault of which one part is in the shim and the other in NICs."""
    return replace(
        in_shim,
        packets_seen=in_shim.packets_seen + in_nics.packets_seen,
        hits=in_shim.hits + in_nics.hits,
        packets_dropped=in_shim.packets_dropped + in_nics.packets_dropped,
    )


def check_settings(fault: Fault, lasting: Iterable[FaultStatus]) -> None:
    """Raises UsageError if another fault changes the same setting already."""
    place = fault.what.place
    for one in lasting:
        if share_a_setting(fault.kind, place, one.kind, one.place):
            already = f"{one.place} {fault.what.already}"
            raise UsageError(f"{already}; `emu fault clear {one.name}` first")
