"""Corruption: packets are damaged on a cable."""

from __future__ import annotations

from typing import ClassVar

from emu.spec.fault.kind import register
from emu.spec.fault.packet_choice import OnPackets


@register
class Corruption(OnPackets):
    """The packets arrive with a wrong check sequence."""

    key: ClassVar[str] = "corruption"
    meaning: ClassVar[str] = "Packets are damaged on a cable."
