"""The kernel's RED as marker, with the settings of `tc` that are nearest to a WRED curve.

    Open vSwitch ─▶ tbf, at the port's rate ─▶ red, the queue ─▶ shim

RED marks by the depth of its own queue. So the queue of a port is in the kernel:
a token bucket passes packets to the shim at the port's rate, and the shim, which sends them at
once, has an empty queue. The other markers apply the curve to the present depth. RED differs:

depth         RED takes a moving average, (1 - W) average + W depth, before the packet joins.
              The largest W that `tc` gives is 1/2, so that it lags by a packet or two.
              It wants burst >= min / avpkt for that, with equality: avpkt divides min.
probability   RED counts packets since the last mark, and spaces marks evenly (Floyd): of a
              probability p it marks 2p / (1 + p) of the packets. Its parameter is set to
              p / (2 - p), which is exact at pmax; half-way up a curve with pmax 20 % it marks
              5 % more packets than the curve says.
bytes         as for the others: whole frames, without FCS, preamble and gap. The bucket adds
              these 24 bytes.
pauses        a port that is paused queues in the shim, whose queue RED does not see.
priorities    one queue for all of a port.

Packets that are not ECN-capable are queued, never dropped (`nodrop`).

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
"""The kernel stores it times 2^32 in 32 bits."""


@dataclass(frozen=True)
class Red:
    """The parameters of `tc` for one port."""

    interface: str
    rate_bps: int
    """The rate of the port's cable in real time."""
    limit_bytes: int
    """The queue's limit; packets above it are dropped."""
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
        """The setting nearest to a curve. `min_bytes` is at least 1, and differs from a large kmin
        by less than 0.01 %.
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
        """The lines for `tc -batch`."""
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
