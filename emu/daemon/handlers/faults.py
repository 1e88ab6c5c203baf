"""Lists, sets and clears faults."""

from __future__ import annotations

from emu.daemon.served_lab import Answer, ServedLab
from emu.lab.ipc.queries import ClearFault, ListFaults, SetFault


def list_all(lab: ServedLab, query: ListFaults) -> Answer:
    return lab.faults.listed(), []


def set_one(lab: ServedLab, query: SetFault) -> Answer:
    return lab.faults.set(query), []


def clear(lab: ServedLab, query: ClearFault) -> Answer:
    return lab.faults.clear(query), []
