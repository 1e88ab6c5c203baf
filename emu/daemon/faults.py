"""Faults that come and go while a standing lab is up, in the process that has them: the shim or
the NICs. Between one packet and the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from emu.bindings.fabric import Fabric
from emu.errors import UsageError
from emu.lab.ipc.messages import Faults, Json
from emu.measure.look import fault_state
from emu.spec.fault import Fault, share_a_setting


def change_faults(fabric: Fabric, asked: Faults) -> Json:
    """The answer to what was asked: the faults that there are then, as `told` has them, and the
    deadlocks that were found so far."""
    match asked:
        case Faults("set", _, fault):
            fabric.set_fault(Fault.model_validate(fault))
        case Faults("clear", name):
            fabric.clear_fault(name)
    return {
        "faults": [told(asdict(fault.record()), fabric.now_ns) for fault in fabric.faults],
        "deadlocks": [asdict(found) for found in fabric.deadlocks()],
    }


def check_settings(fault: Fault, lasting: Iterable[Json]) -> None:
    """Raises UsageError when it would change a setting that one of these changes, as `told`."""
    place = fault.what.place
    for one in lasting:
        if share_a_setting(fault.kind, place, one["kind"], one["place"]):
            already = f"{one['place']} {fault.what.already}"
            raise UsageError(f"{already}; `emu fault clear {one['name']}` first")


def told(record: Json, now_ns: int) -> Json:
    """A fault's record (the fields of a `FaultRecord`), and whether it is over."""
    return {**record, "state": fault_state(record["at_ns"], record["end_ns"], now_ns)}
