"""The default Kmin, where marking begins, and Kmax, where every packet is marked.

    empty ──▶ Kmin ──────────────▶ Kmax ──▶ XOFF ──▶ headroom
              first marks          all      pause    packets already on the cable

Operators scale Kmin and Kmax with the rate: 100 KB and 400 KB for each 25 Gbit/s, which take 32 us
and 128 us to send (run.py of HPCC's authors). Three limits apply:

    at least   two of the longest packets; a single packet in the queue is no congestion
    at least   the round trip of the port's own cable, if it is longer than 32 us
    at most    Kmax at the depth where the port pauses or drops, and Kmin at a quarter of it: marks
               must come before pauses, or senders are stopped before they are slowed down

A port pauses at its XOFF. With a dynamic threshold (alpha) this module takes the XOFF of a port
that is busy alone: alpha / (1 + alpha) of the shared pool. A lossy queue of a port with PFC never
pauses a sender, so the limit of its curve is the depth where it drops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from emu.spec.merge import inherit
from emu.spec.switch import Curve, Ecn, SwitchSpec
from emu.units import PS_PER_S, format_rate, format_size, write_time

C = TypeVar("C", bound=Curve)

KMIN_PS = 32_000_000
"""100 KB at 25 Gbit/s."""
RATIO = 4
"""The ratio of Kmax to Kmin."""
_PACKETS = 2


@dataclass(frozen=True)
class Threshold:
    """A number of bytes, and the reason for it."""

    size_bytes: int
    reason: str


@dataclass(frozen=True)
class PortScale:
    """The inputs from which the thresholds of a port are derived."""

    rate_bps: int
    delay_ps: int
    """The one-way delay of its cable."""
    frame_bytes: int
    """The longest packet of any host."""
    limit: Threshold
    """The bytes that the port may hold before it pauses or drops."""


def limit_of(settings: SwitchSpec, pool_bytes: int, *, lossless: bool) -> Threshold:
    """The bytes of the shared pool that a port may hold before it pauses or drops, if no other
    port is busy.

    `lossless`: the limit of priorities with PFC, if the port has any.
    """
    pool_bytes = max(0, pool_bytes)
    if settings.pfc is None or not lossless:
        return _lossy_limit(settings, pool_bytes)
    xoff = settings.pfc.xoff
    if xoff.size_bytes:
        return Threshold(xoff.size_bytes, f"xoff {xoff}")
    return Threshold(
        _share(pool_bytes, xoff.alpha),
        f"xoff {xoff} of a shared pool of {format_size(pool_bytes)}, for a port that is busy alone",
    )


def _lossy_limit(settings: SwitchSpec, pool_bytes: int) -> Threshold:
    share, limit = _share(pool_bytes, settings.alpha), settings.queue_limit_bytes
    if limit is not None and limit < share:
        return Threshold(limit, f"queue_limit {format_size(limit)}")
    why = f"alpha {settings.alpha:g} of a shared pool of {format_size(pool_bytes)}"
    return Threshold(share, f"{why}, for a queue that is busy alone")


def _share(pool_bytes: int, alpha: float) -> int:
    return int(pool_bytes * alpha / (1 + alpha))


def curve_of(given: Curve, scale: PortScale) -> tuple[Threshold, Threshold]:
    """Kmin and Kmax, as given or derived from the port."""
    kmin = _kmin(given, scale)
    return kmin, _kmax(given, kmin, scale)


def _kmin(given: Curve, scale: PortScale) -> Threshold:
    if given.kmin_given is not None:
        return Threshold(given.kmin_given, "given")
    wanted = max(_kmin_candidates(scale), key=lambda own: own.size_bytes)
    limits = [
        Threshold(
            scale.limit.size_bytes // RATIO,
            f"a quarter of what the port may hold ({scale.limit.reason}), so that marks come "
            "before pauses or drops",
        )
    ]
    if given.kmax_given is not None:
        limits.append(Threshold(given.kmax_given // RATIO, "a quarter of the given kmax"))
    return min(wanted, *limits, key=lambda own: own.size_bytes)


def _kmin_candidates(scale: PortScale) -> tuple[Threshold, ...]:
    rate = format_rate(scale.rate_bps)
    return (
        Threshold(
            _bytes_in(KMIN_PS, scale.rate_bps), f"100 KB for each 25 Gb/s, and the port has {rate}"
        ),
        Threshold(
            _bytes_in(2 * scale.delay_ps, scale.rate_bps),
            f"the round trip of the port's cable, {write_time(2 * scale.delay_ps)} at {rate}",
        ),
        Threshold(_PACKETS * scale.frame_bytes, "two of the longest packets"),
    )


def _kmax(given: Curve, kmin: Threshold, scale: PortScale) -> Threshold:
    if given.kmax_given is not None:
        return Threshold(given.kmax_given, "given")
    wanted, limit = RATIO * kmin.size_bytes, scale.limit
    if kmin.size_bytes < limit.size_bytes < wanted:
        return Threshold(limit.size_bytes, f"what the port may hold ({limit.reason})")
    return Threshold(min(wanted, 2**32 - 1), "four times kmin")


def _bytes_in(time_ps: int, rate_bps: int) -> int:
    return time_ps * rate_bps // (8 * PS_PER_S)


def with_thresholds(given: Ecn, scale_of: Callable[[int | None], PortScale]) -> Ecn:
    """The ECN settings with Kmin and Kmax in every curve. `scale_of(queue)` returns the inputs for
    a queue's curve; `scale_of(None)` those for all other queues."""
    queues = {
        queue: None
        if own is None
        else _complete(inherit(inherit(Curve(), given), own), scale_of(queue))
        for queue, own in given.queues.items()
    }
    return _complete(given.model_copy(update={"queues": queues}), scale_of(None))


def _complete(given: C, scale: PortScale) -> C:
    kmin, kmax = curve_of(given, scale)
    return given.model_copy(update={"kmin_given": kmin.size_bytes, "kmax_given": kmax.size_bytes})
