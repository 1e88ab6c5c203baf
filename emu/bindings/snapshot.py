"""The state of a fabric at one instant, as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PortView:
    """The state of a port. Fields have one value per class: 8 priorities, or 16 virtual lanes."""

    queued_bytes: tuple[int, ...]
    """Bytes in its egress queues; 0 for a NIC, which makes each packet only when it may send it."""
    held_bytes: tuple[int, ...]
    """Bytes in the buffer of its node, for packets that arrived here and have not left."""
    paused: tuple[bool, ...]
    """Whether the far end has paused it (PFC)."""
    credit_bytes: tuple[int, ...]
    """Bytes that it may send before it needs another credit update (InfiniBand)."""


@dataclass(frozen=True)
class QueuePairView:
    """The sending queue pair of a flow. Packets count from 0, the first packet of the flow.

    With acknowledgements (`transport: rc`), acknowledged <= received <= next. `uc` and `ud` have
    none: a packet counts as acknowledged as soon as it is sent, and received <= acknowledged ==
    next.
    """

    failed: bool
    posted: int
    """Packets of all messages posted so far."""
    sent: int
    """Packets that have left at least once."""
    next: int
    """The packet to send next: less than `sent` during a retransmission."""
    acknowledged: int
    """Packets that need not be sent again."""
    received: int
    """Packets that the far end has received: in order on `rc`; on `uc` up to the latest one, lost
    ones included; on `ud` datagrams in any order."""
    window: int
    """Packets in flight that congestion control allows; 0: no limit."""
    rate_bps: int
    """The rate that congestion control allows; without a limit, the line rate."""

    @property
    def in_flight(self) -> int:
        """Packets that were sent and not acknowledged yet."""
        return self.next - self.acknowledged
