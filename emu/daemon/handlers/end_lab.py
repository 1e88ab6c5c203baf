"""Ends the lab: the daemon's first process exits, and the kernel ends all others
(emu.lab.supervisor)."""

from __future__ import annotations

from emu.daemon.messages import EndLab
from emu.daemon.served_lab import Answer, ServedLab
from emu.lab.ipc.messages import Done


def answer(lab: ServedLab, query: EndLab) -> Answer:
    lab.over.set()
    return Done(), []
