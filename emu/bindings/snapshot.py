"""What a fabric looks like at one instant: values to read, print and compare, nothing live."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PortView:
    """A port. Each field has a value for every class: 8 priorities, or 16 virtual lanes."""

    queued_bytes: tuple[int, ...]
    """In its egress queues. A host's NIC has none: it makes a packet when it may send it."""
    held_bytes: tuple[int, ...]
    """Of its node's buffer, by packets that came in here and have not left."""
    paused: tuple[bool, ...]
    """Whether the far end has paused it (PFC)."""
    credit_bytes: tuple[int, ...]
    """What it may send without another credit update (InfiniBand)."""


@dataclass(frozen=True)
class QueuePairView:
    """The sending queue pair of a flow. Packets count from 0, the flow's first one.

    Where packets are acknowledged (`transport: rc`), acknowledged <= received <= next. On `uc` and
    `ud` nobody acknowledges, so a packet need not be sent again as soon as it is sent, and
    received <= acknowledged == next.
    """

    failed: bool
    posted: int
    """Packets of all messages that it was given so far."""
    sent: int
    """Packets that have left at least once."""
    next: int
    """The packet that it sends next: less than `sent` while it sends again."""
    acknowledged: int
    """Packets that need not be sent again."""
    received: int
    """Packets that the far end has taken: in order on `rc`; on `uc` it has got so far, lost ones
    included; on `ud` datagrams, in whatever order they came."""
    window: int
    """Packets in flight that congestion control allows; 0: as many as it likes."""
    rate_bps: int
    """What congestion control allows it; the line's rate where that sets no limit."""

    @property
    def in_flight(self) -> int:
        """Packets that were sent and not acknowledged yet."""
        return self.next - self.acknowledged
