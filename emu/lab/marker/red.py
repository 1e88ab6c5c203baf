"""The kernel's own RED as marker: the nearest that `tc` can set to a WRED curve.

    Open vSwitch ─▶ tbf, at the port's rate ─▶ red, the queue ─▶ shim

RED marks by the queue that it is itself. So the queue of a port stands in the kernel:
a token bucket lets packets out to the shim at the rate at which the port sends them, and
the shim, which has them on the cable at once, finds its own queue empty. Where it differs
from the curve on the depth at this moment, which the other markers follow:

depth         RED takes a moving average, (1 - W) average + W depth, before the packet joins.
              The largest W that `tc` gives is 1/2, so that it lags by a packet or two.
              It wants burst >= min / avpkt for that, with equality: avpkt divides min.
probability   RED counts packets since the last mark, and spaces marks evenly (Floyd): of a
              probability p it marks 2p / (1 + p) of the packets. What is told is p / (2 - p),
              which makes pmax right; half-way up the curve it is pmax / 20 too many at 20 %.
bytes         as for the others: whole frames, without FCS, preamble and gap. The bucket adds
              these 24 bytes.
pauses        a port that is paused queues in the shim, whose queue RED does not see.
priorities    one queue for all of a port.

Packets that do not understand ECN are queued, never dropped (`nodrop`).

These qdiscs are lines for `tc -batch` and not network steps: pyroute2 has no RED, and gives its
token bucket no overhead.

Source: iproute2, tc/q_red.c and tc/tc_red.c; Linux, include/net/red.h, net/sched/sch_red.c.
"""

from __future__ import annotations

from dataclasses import dataclass

WLOG = 1
"""W is 2^-WLOG."""
_AVERAGE_PACKET = 4200
_LARGEST_FRAME = 4300
_GAP_BYTES = 24
_LARGEST_PROBABILITY = 1 - 2**-20
"""Times 2^32 it must fit into 32 bits."""


@dataclass(frozen=True)
class Red:
    """What `tc` is told of one port."""

    interface: str
    rate_bps: int
    """Of its cable, on this machine's clock."""
    limit_bytes: int
    """Above that packets are dropped."""
    min_bytes: int
    max_bytes: int
    avpkt_bytes: int
    burst: int
    probability: float

    @classmethod
    def nearest(
        cls,
        interface: str,
        *,
        kmin_bytes: int,
        kmax_bytes: int,
        pmax: float,
        rate_bps: int,
        limit_bytes: int,
    ) -> Red:
        """The setting nearest to a curve; min is kmin but for less than a hundredth of a per cent
        of a large one, and a byte at least.
        """
        burst = max(1, kmin_bytes // _AVERAGE_PACKET)
        avpkt_bytes = max(1, kmin_bytes // burst)
        least = avpkt_bytes * burst
        return cls(
            interface,
            rate_bps,
            limit_bytes,
            min_bytes=least,
            max_bytes=max(kmax_bytes, least),
            avpkt_bytes=avpkt_bytes,
            burst=burst,
            probability=min(pmax / (2 - pmax), _LARGEST_PROBABILITY),
        )

    def lines(self) -> tuple[str, str]:
        """For `tc -batch`."""
        return self.bucket("root handle 1:"), self.queue("parent 1:1 handle 10:")

    def bucket(self, place: str) -> str:
        """The token bucket, at a place in the interface's tree of qdiscs."""
        return (
            f"qdisc add dev {self.interface} {place} tbf rate {self.rate_bps}bit "
            f"burst {_LARGEST_FRAME} limit {self.limit_bytes} overhead {_GAP_BYTES}"
        )

    def queue(self, place: str) -> str:
        """RED itself."""
        return (
            f"qdisc add dev {self.interface} {place} red limit {self.limit_bytes} "
            f"min {self.min_bytes} max {self.max_bytes} avpkt {self.avpkt_bytes} "
            f"burst {self.burst} probability {self.probability:.9f} "
            f"bandwidth {self.rate_bps}bit ecn nodrop"
        )
