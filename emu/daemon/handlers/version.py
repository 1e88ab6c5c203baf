"""Sends the version of emu that runs the lab."""

from __future__ import annotations

from emu.daemon.messages import GetVersion, Version
from emu.daemon.served_lab import Answer, ServedLab
from emu.lab.version import version


def answer(lab: ServedLab, query: GetVersion) -> Answer:
    return Version(version()), []
