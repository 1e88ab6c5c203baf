"""Sends the present service levels of InfiniBand's paths."""

from __future__ import annotations

from emu.daemon.messages import GetPathLevels, PathLevels
from emu.daemon.served_lab import Answer, ServedLab


def answer(lab: ServedLab, query: GetPathLevels) -> Answer:
    subnet = lab.session.subnet
    return PathLevels(subnet.join().levels if subnet else {}), []
