"""Starts or stops the workload."""

from __future__ import annotations

from emu.daemon.messages import StartTraffic, StopTraffic
from emu.daemon.served_lab import Answer, ServedLab


def start(lab: ServedLab, query: StartTraffic) -> Answer:
    lab.traffic.start()
    return lab.traffic.status, []


def stop(lab: ServedLab, query: StopTraffic) -> Answer:
    lab.traffic.stop()
    return lab.traffic.status, []
