"""`hosts.path:`: the path between a host's NIC and the memory of its messages.

The defaults are round figures, not those of a vendor: a PCIe 5.0 x16 slot carries 63 GB/s in each
direction, and a staged copy takes about a microsecond.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from emu.spec import references
from emu.spec.base import Model
from emu.spec.notes import note
from emu.spec.quantities import Rate, Size, Time
from emu.units import PS_PER_S, write_rate, write_time

_NS = 1000


class HostPath(Model):
    """The path between NIC and memory. Without it, messages reach memory at once."""

    model_config = ConfigDict(
        json_schema_extra=note(why="a round figure, not that of a vendor; measure your own hosts")
    )

    kind: Literal["gpudirect", "host-staged"] = Field(
        description="gpudirect: the NIC reads and writes the messages' memory itself; host-staged: "
        "each message is copied to host memory before it is sent, and from there after it arrived."
    )
    pcie_bps: Rate = Field(
        default=504_000_000_000,
        alias="pcie",
        description="Rate of the NIC's slot in each direction.",
        json_schema_extra=note(why="63 GB/s: a PCIe 5.0 slot of 16 lanes", source=references.PCIE),
    )
    doorbell_ps: Time = Field(
        default=200 * _NS,
        alias="doorbell",
        description="Time from posting a message until the NIC has received it.",
    )
    read_ps: Time = Field(
        default=600 * _NS,
        alias="read",
        description="Time from the NIC's request to memory until the first byte arrives; READ "
        "responses wait for it too.",
    )
    write_ps: Time = Field(
        default=300 * _NS,
        alias="write",
        description="Time from a packet's arrival in the NIC until it is in memory.",
    )
    completion_ps: Time = Field(
        default=200 * _NS,
        alias="completion",
        description="Time from the NIC to the waiting program.",
    )
    buffer_bytes: Size = Field(
        default=1_000_000,
        alias="buffer",
        gt=0,
        description="Buffer of the NIC for data that waits for memory. When it is full, the NIC "
        "pauses a lossless priority and drops packets of a lossy one.",
    )
    copy_rate_bps: Rate = Field(
        default=200_000_000_000, alias="copy", description="host-staged: rate of the copies."
    )
    copy_latency_ps: Time = Field(
        default=1000 * _NS, alias="copy_latency", description="host-staged: delay before each copy."
    )
    copy_piece_bytes: Size = Field(
        default=512 * 1024,
        alias="copy_piece",
        gt=0,
        description="host-staged: messages are copied in pieces of this size; a message is sent "
        "once its first piece is copied.",
    )

    @property
    def is_staged(self) -> bool:
        return self.kind == "host-staged"

    @property
    def before_ps(self) -> int:
        """Time from posting a message of one piece until the NIC sends it."""
        return self.doorbell_ps + self.read_ps + self._copy_ps

    @property
    def after_ps(self) -> int:
        """Time from the arrival of its last byte in the NIC until it is in its own memory."""
        return self.write_ps + self._copy_ps

    def before_message_ps(self, size_bytes: int, *, fetches: bool) -> int:
        """Time from posting a message until the NIC sends it; `fetches`: it is a READ, whose
        request has nothing to copy."""
        copied_ps = 0 if fetches else self._copied_ps(size_bytes)
        return self.doorbell_ps + self.read_ps + copied_ps

    def after_message_ps(self, size_bytes: int) -> int:
        """Time from the arrival of a message's last byte in the NIC until it is in memory."""
        return self.write_ps + self._copied_ps(size_bytes)

    def _copied_ps(self, size_bytes: int) -> int:
        """How long a copy of the first, or the last, piece of a message takes."""
        if not self.is_staged:
            return 0
        piece = min(size_bytes, self.copy_piece_bytes)
        return self.copy_latency_ps + 8 * piece * PS_PER_S // self.copy_rate_bps

    @property
    def _copy_ps(self) -> int:
        return self.copy_latency_ps if self.is_staged else 0

    def __str__(self) -> str:
        return (
            f"{self.kind}: a message leaves {write_time(self.before_ps)} after it was posted, "
            f"is in memory {write_time(self.after_ps)} after it arrived, "
            f"at {write_rate(self.rate_bps)} at most"
        )

    @property
    def rate_bps(self) -> int:
        """The rate between the network and the messages' own memory, in each direction."""
        return min(self.pcie_bps, self.copy_rate_bps) if self.is_staged else self.pcie_bps
