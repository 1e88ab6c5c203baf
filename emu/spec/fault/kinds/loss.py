"""Loss: packets are lost on a cable."""

from __future__ import annotations

from typing import ClassVar

from emu.spec.fault.kind import register
from emu.spec.fault.packet_choice import OnPackets


@register
class Loss(OnPackets):
    """The packets are lost."""

    key: ClassVar[str] = "loss"
    meaning: ClassVar[str] = "Packets are lost on a cable."
