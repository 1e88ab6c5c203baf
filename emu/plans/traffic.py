"""Flows of testers: messages of one packet at a fixed rate, without acknowledgement.

A tester's port sends on whatever happens to its packets, so the flows are unreliable connections
(UC) without congestion control.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WIRE_OVERHEAD = 82
"""Bytes of a SEND on a cable besides its payload: preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12,
ICRC 4, FCS 4, gap 12."""
GAPS = 20
"""Preamble and gap, which the length of a frame does not count."""
_SHORTEST_BURST_PS = 1_000_000
"""Times of messages are whole nanoseconds, so that a burst must not be much shorter than 1 us."""


def payload_of_frame(frame_bytes: int) -> int:
    """The payload of a frame of this length, FCS included: a multiple of 4 bytes, at least 4."""
    return max(4, (frame_bytes + GAPS - WIRE_OVERHEAD) // 4 * 4)


@dataclass(frozen=True)
class Stream:
    """A flow of packets of one size at a fixed rate."""

    name: str
    source: str
    to: str
    priority: int
    payload: int
    rate_bps: float
    """With preamble and gap, as the line counts."""
    delay_ns: int = 0
    """From the start of the traffic to the start of this flow."""

    @property
    def wire_bits(self) -> int:
        return (self.payload + WIRE_OVERHEAD) * 8

    @property
    def packets_per_ns(self) -> float:
        return self.rate_bps / self.wire_bits / 1e9

    def entry(self, start_ns: int, for_ns: int) -> dict[str, Any]:
        """The entry of a spec's traffic."""
        period_ps = 1000 / self.packets_per_ns
        burst = max(1, -(-_SHORTEST_BURST_PS // int(period_ps)))
        return {
            "name": self.name,
            "pattern": "pair",
            "from": self.source,
            "to": self.to,
            "op": "send",
            "transport": "uc",
            "priority": self.priority,
            "size": self.payload,
            "start": f"{start_ns + self.delay_ns}ns",
            "every": f"{-(-burst * period_ps // 1000):.0f}ns",
            "burst": burst,
            "outstanding": burst,
            "count": max(1, round((for_ns - self.delay_ns) * self.packets_per_ns)),
        }
