"""Stops the lab's emulated time, and lets it go on."""

from __future__ import annotations

from emu.daemon.served_lab import Answer, ServedLab
from emu.lab.ipc.lab_time import ContinueTime, PauseTime, StepTime


def pause(lab: ServedLab, query: PauseTime) -> Answer:
    return lab.clock.pause(), []


def go_on(lab: ServedLab, query: ContinueTime) -> Answer:
    return lab.clock.go_on(), []


def step(lab: ServedLab, query: StepTime) -> Answer:
    return lab.clock.step(query.step_ps), []
