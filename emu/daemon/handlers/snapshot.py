"""Takes a snapshot of the lab. The counters themselves are open files."""

from __future__ import annotations

import os
from contextlib import ExitStack

from emu.daemon.handlers.status import status_of
from emu.daemon.messages import GetSnapshot, Snapshot
from emu.daemon.served_lab import Answer, ServedLab


def answer(lab: ServedLab, query: GetSnapshot) -> Answer:
    status = status_of(lab)
    latest = lab.nics.copy_counters(lab.traffic.latest)
    with ExitStack() as on_error:
        for file in latest.files:
            on_error.callback(os.close, file)
        listed = lab.faults.listed()
        ports = os.dup(lab.counters_file)
        on_error.pop_all()
    layout = lab.session.shim_ready.counters
    assert layout is not None
    snapshot = Snapshot(
        status,
        ports=layout,
        hosts=latest.hosts,
        flows=latest.flows,
        faults=tuple(map(lab.faults.snapshot, listed.faults)),
        deadlocks=listed.deadlocks,
    )
    return snapshot, [ports, *latest.files]
