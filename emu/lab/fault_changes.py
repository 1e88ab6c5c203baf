"""Sets and clears faults in a running shim or NIC process, between two packets."""

from __future__ import annotations

from dataclasses import asdict

from emu.bindings.fabric import Fabric
from emu.lab.ipc.codec import Message
from emu.lab.ipc.queries import ClearFault, FaultList, FaultStatus, SetFault
from emu.measure.lab_snapshot import fault_state
from emu.measure.records import FaultRecord
from emu.spec.fault import Fault


def change_faults(fabric: Fabric, query: Message) -> FaultList:
    """Sets or clears a fault, if the query requests that. Returns all faults, and the deadlocks
    found so far."""
    match query:
        case SetFault(_, fault):
            fabric.set_fault(Fault.model_validate(fault))
        case ClearFault(name):
            fabric.clear_fault(name)
    now_ns = fabric.now_ns
    faults = (_status_of(fault.record(), now_ns) for fault in fabric.faults)
    return FaultList(tuple(faults), tuple(fabric.deadlocks()))


def _status_of(record: FaultRecord, now_ns: int) -> FaultStatus:
    """A fault's record together with its state."""
    state = fault_state(record.at_ns, record.end_ns, now_ns)
    return FaultStatus(**asdict(record), state=state)
