"""The handlers of a background lab: one file for each kind of query.

A handler takes the lab and the query, and returns the answer and open files for the client, which
are closed after they are sent. It raises UsageError if the request cannot be carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emu.daemon.exporter.messages import GetCounters
from emu.daemon.handlers import (
    borrow_nic,
    capture,
    counters,
    end_lab,
    faults,
    join_lab,
    lab_time,
    namespaces,
    path_levels,
    ports,
    rdma_sysfs,
    reachability,
    snapshot,
    status,
    tools,
    traffic,
    version,
)
from emu.daemon.messages import (
    BorrowNic,
    Capture,
    EndLab,
    GetNamespaces,
    GetPathLevels,
    GetSnapshot,
    GetStatus,
    GetVersion,
    JoinLab,
    ListPorts,
    MeasureReachability,
    RunTool,
    ShowRdmaSysfs,
    StartTraffic,
    StopTraffic,
)
from emu.daemon.served_lab import Answer, ServedLab
from emu.lab.ipc.lab_time import ContinueTime, PauseTime, StepTime
from emu.lab.ipc.queries import ClearFault, GetPorts, ListFaults, SetFault

HANDLERS: dict[type, Callable[[ServedLab, Any], Answer]] = {
    BorrowNic: borrow_nic.answer,
    Capture: capture.answer,
    ClearFault: faults.clear,
    ContinueTime: lab_time.go_on,
    EndLab: end_lab.answer,
    GetCounters: counters.answer,
    GetNamespaces: namespaces.answer,
    GetPathLevels: path_levels.answer,
    GetPorts: ports.see,
    GetSnapshot: snapshot.answer,
    GetStatus: status.answer,
    GetVersion: version.answer,
    JoinLab: join_lab.answer,
    ListFaults: faults.list_all,
    ListPorts: ports.list_all,
    MeasureReachability: reachability.answer,
    PauseTime: lab_time.pause,
    RunTool: tools.answer,
    SetFault: faults.set_one,
    ShowRdmaSysfs: rdma_sysfs.answer,
    StepTime: lab_time.step,
    StartTraffic: traffic.start,
    StopTraffic: traffic.stop,
}
