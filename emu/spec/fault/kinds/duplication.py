"""Duplication: packets arrive twice from a cable."""

from __future__ import annotations

from typing import ClassVar

from emu.spec.fault.kind import register
from emu.spec.fault.packet_choice import OnPackets


@register
class Duplication(OnPackets):
    """The packets arrive twice."""

    key: ClassVar[str] = "duplication"
    meaning: ClassVar[str] = "Packets arrive twice from a cable."
