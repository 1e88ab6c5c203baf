"""Sensible values of a key, for `--vary KEY` without values.

They follow from four lengths of the fabric:

    R      the rate of the fastest cable of a host
    RTT    the time from a lone packet to its acknowledgement, between the farthest two hosts
    BDP    R times RTT: the bytes that fill the path
    limit  what a port to a host may hold before it pauses or drops, if it is busy alone

Marks and pauses are about queues, so their thresholds are multiples of packets, of the BDP and of
what takes a port a certain time to send; increases of a rate are shares of R; timers are multiples
of the RTT, which is how long the reaction to a signal takes to be seen. A range is wide: from a
value that is known to be too small to one that is too large. RULES has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emu.errors import UsageError
from emu.spec.bdp import round_trip_ps
from emu.spec.diagnostic import did_you_mean
from emu.spec.scenario import Spec
from emu.spec.switch import CREDIT_LIMIT
from emu.units import PS_PER_S, PS_PER_US, write_rate, write_size, write_time

_LONG_US = 128
"""Four times the 32 us that operators' Kmin takes to send (`emu/spec/thresholds.py`)."""
_DIGITS = 2
"""Significant digits of the ends of a range that have a unit."""


@dataclass(frozen=True)
class Lengths:
    """The four lengths of a fabric, and its longest packet."""

    rate_bps: int
    rtt_ps: int
    limit_bytes: int
    frame_bytes: int

    @property
    def bdp_bytes(self) -> int:
        return self.bytes_in(self.rtt_ps)

    @property
    def rtt_us(self) -> int:
        """Rounded up."""
        return -(-self.rtt_ps // PS_PER_US)

    def bytes_in(self, time_ps: int) -> int:
        """What R carries in a time."""
        return self.rate_bps * time_ps // (8 * PS_PER_S)

    def rate_mbps(self, part: int) -> int:
        """A part of R in Mbit/s, at least 1."""
        return max(1, self.rate_bps // part // 10**6)


def lengths_of(spec: Spec) -> Lengths:
    """The lengths of a spec's fabric."""
    topology = spec.topology.build()
    hosts = list(topology.host)
    ports = [topology.ports[host][0] for host in hosts]
    facing = [topology.peer[port] for port in ports if topology.peer[port].node in topology.switch]
    mtu = spec.largest_mtu
    return Lengths(
        rate_bps=max(topology.cable[port].rate_bps for port in ports),
        rtt_ps=max(round_trip_ps(topology, spec, hosts[0], host, mtu) for host in hosts[1:]),
        limit_bytes=min(
            (spec.port_scale(port).limit.size_bytes for port in facing),
            default=spec.switches.buffer_bytes,
        ),
        frame_bytes=spec.largest_frame_bytes,
    )


@dataclass(frozen=True)
class Rule:
    """The range of a key."""

    ending: str
    """How the key ends."""
    low: Callable[[Lengths], float]
    high: Callable[[Lengths], float]
    write: Callable[[int], str] | None
    """Writes an end with its unit; None: a plain number."""
    formula: str
    why: str


@dataclass(frozen=True)
class Range:
    """The range of a key in a fabric, as after `--vary KEY=`."""

    values: str
    why: str


def range_of(key: str, lengths: Lengths, option: str) -> Range:
    """The sensible range of a key. Raises UsageError if none is known, or if it is empty here."""
    if key.endswith(_XOFF):
        return Range(_ALPHAS, "powers of two, as switches take them, around the common alpha 1")
    rule = _rule_of(key)
    if rule is None:
        hint = did_you_mean(key.split(".")[-1], (own.ending.split(".")[-1] for own in RULES))
        raise UsageError(
            f"{option} {key}: no sensible range is known{hint}; write it like "
            f"{option} {key}=LOW..HIGH"
        )
    write = rule.write
    low, high = (
        end(lengths) if write is None else _rounded(end(lengths)) for end in (rule.low, rule.high)
    )
    if low >= high:
        raise UsageError(
            f"{option} {key}: the formula {rule.formula} gives no range in this fabric; write it "
            f"like {option} {key}=LOW..HIGH"
        )
    ends = (f"{end:.15g}" if write is None else write(round(end)) for end in (low, high))
    return Range("..".join(ends), f"{rule.formula}: {rule.why}")


def has_range(key: str) -> bool:
    """Whether a sensible range of the key is known: whether operators tune it."""
    return key.endswith(_XOFF) or _rule_of(key) is not None


def _rule_of(key: str) -> Rule | None:
    return next((rule for rule in RULES if f".{key}".endswith(f".{rule.ending}")), None)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


_XOFF = "pfc.xoff"
_ALPHAS = "alpha 1/16,alpha 1/8,alpha 1/4,alpha 1/2,alpha 1,alpha 2,alpha 4,alpha 8"


_KMIN_MOST = "min(limit / 2, max(4 BDP, 128 us of R))"
_KMAX_MOST = "min(limit, max(16 BDP, 512 us of R))"
_STEP = "a step of R/20000 takes thousands of steps to fill the link, one of R/100 a hundred"
_AT_ONCE = "the paper's 50 us is the usual longest; a CNP for each mark is the shortest"

RULES = (
    Rule(
        "kmin",
        lambda own: 2 * own.frame_bytes,
        lambda own: min(
            own.limit_bytes / 2, max(4 * own.bdp_bytes, own.bytes_in(_LONG_US * PS_PER_US))
        ),
        write_size,
        f"2 packets to {_KMIN_MOST}",
        "one packet in the queue is no congestion; marks must come before pauses or drops, and "
        "operators take 32 us of R",
    ),
    Rule(
        "kmax",
        lambda own: 4 * own.frame_bytes,
        lambda own: min(
            own.limit_bytes, max(16 * own.bdp_bytes, own.bytes_in(4 * _LONG_US * PS_PER_US))
        ),
        write_size,
        f"4 packets to {_KMAX_MOST}",
        "operators take four times kmin; beyond the limit it is never reached",
    ),
    Rule(
        "pmax",
        lambda _: 0.01,
        lambda _: 1.0,
        None,
        "1 % to 100 %",
        "the values of DCQCN's paper and of NVIDIA's switches",
    ),
    Rule(
        "switches.alpha",
        lambda _: 1 / 16,
        lambda _: 8,
        None,
        "1/16 to 8",
        "from a queue that may take a sixteenth of the free buffer to SONiC's 8",
    ),
    Rule(
        "dcqcn.rai",
        lambda own: own.rate_bps / 20_000,
        lambda own: own.rate_bps / 100,
        write_rate,
        "R/20000 to R/100",
        f"the paper takes R/1000; {_STEP}",
    ),
    Rule(
        "dcqcn.rhai",
        lambda own: own.rate_bps / 4_000,
        lambda own: own.rate_bps / 20,
        write_rate,
        "R/4000 to R/20",
        "five times the range of rai, as in the paper's authors' simulations",
    ),
    Rule(
        "dcqcn.min_rate",
        lambda own: own.rate_bps / 10_000,
        lambda own: own.rate_bps / 50,
        write_rate,
        "R/10000 to R/50",
        "10000 flows share the link at the least rate, or 50",
    ),
    Rule(
        "dcqcn.g",
        lambda _: 1 / 1024,
        lambda _: 1 / 16,
        None,
        "1/1024 to 1/16",
        "the paper takes 1/256; DCTCP 1/16",
    ),
    Rule(
        "dcqcn.alpha_timer",
        lambda own: own.rtt_ps,
        lambda own: max(20 * own.rtt_ps, 300 * PS_PER_US),
        write_time,
        "RTT to max(20 RTT, 300 us)",
        "alpha must not decay before the next CNP can arrive; the paper takes 55 us",
    ),
    Rule(
        "dcqcn.increase_timer",
        lambda own: own.rtt_ps,
        lambda own: max(20 * own.rtt_ps, 300 * PS_PER_US),
        write_time,
        "RTT to max(20 RTT, 300 us)",
        "an increase is felt after an RTT; the paper takes 55 us, NVIDIA's NICs 300 us",
    ),
    Rule(
        "dcqcn.cnp_interval",
        lambda _: 2 * PS_PER_US,
        lambda own: max(5 * own.rtt_ps, 50 * PS_PER_US),
        write_time,
        "2 us to max(5 RTT, 50 us)",
        _AT_ONCE,
    ),
    Rule(
        "dcqcn.byte_counter",
        lambda own: max(2 * own.bdp_bytes, 20 * own.frame_bytes),
        lambda own: max(200 * own.bdp_bytes, 10_000_000),
        write_size,
        "max(2 BDP, 20 packets) to max(200 BDP, 10 MB)",
        "an increase for each RTT at full rate, up to the paper's 10 MB",
    ),
    Rule("dcqcn.fast_recovery", lambda _: 1, lambda _: 10, None, "1 to 10", "the paper takes 5"),
    Rule(
        "roce_cc_ecn.rpg_time_reset",
        lambda own: own.rtt_us,
        lambda own: max(20 * own.rtt_us, 1000),
        None,
        "RTT to max(20 RTT, 1 ms), in us",
        "an increase is felt after an RTT; NICs take 300 us",
    ),
    Rule(
        "roce_cc_ecn.rpg_byte_reset",
        lambda _: 1024,
        lambda _: 32767,
        None,
        "1024 to 32767 bytes",
        "32767 is the most that NICs take, and their default",
    ),
    Rule(
        "roce_cc_ecn.rpg_threshold",
        lambda _: 1,
        lambda _: 10,
        None,
        "1 to 10",
        "NICs take 1, the paper 5",
    ),
    Rule(
        "roce_cc_ecn.rpg_ai_rate",
        lambda own: own.rate_mbps(20_000),
        lambda own: own.rate_mbps(100),
        None,
        "R/20000 to R/100, in Mbit/s",
        f"NICs take 5; {_STEP}",
    ),
    Rule(
        "roce_cc_ecn.rpg_hai_rate",
        lambda own: own.rate_mbps(4_000),
        lambda own: own.rate_mbps(20),
        None,
        "R/4000 to R/20, in Mbit/s",
        "five times the range of rpg_ai_rate; NICs take ten times rpg_ai_rate",
    ),
    Rule(
        "roce_cc_ecn.rpg_min_rate",
        lambda _: 1,
        lambda own: own.rate_mbps(50),
        None,
        "1 Mbit/s to R/50",
        "NICs take 1; at R/50 fifty flows keep the link full",
    ),
    Rule(
        "roce_cc_ecn.rate_reduce_monitor_period",
        lambda _: 1,
        lambda own: max(5 * own.rtt_us, 100),
        None,
        "1 us to max(5 RTT, 100 us), in us",
        "NICs take 4 us; a second cut within an RTT answers the same queue twice",
    ),
    Rule(
        "roce_cc_ecn.min_time_between_cnps",
        lambda _: 1,
        lambda own: max(5 * own.rtt_us, 50),
        None,
        "1 us to max(5 RTT, 50 us), in us",
        _AT_ONCE,
    ),
    Rule(
        "roce_cc_ecn.dce_tcp_g",
        lambda _: 900,
        lambda _: 1023,
        None,
        "900 to 1023, of 1024",
        "NICs take 1019: alpha halves in 142 updates; with 900 in 5",
    ),
    Rule(
        "roce_cc_ecn.dce_tcp_rtt",
        lambda _: 1,
        lambda own: max(5 * own.rtt_us, 50),
        None,
        "1 us to max(5 RTT, 50 us), in us",
        "NICs take 1 us; the paper 55 us",
    ),
    Rule("dctcp.g", lambda _: 1 / 64, lambda _: 1 / 4, None, "1/64 to 1/4", "RFC 8257 takes 1/16"),
    Rule(
        "swift.base_target",
        lambda own: own.rtt_ps,
        lambda own: 10 * own.rtt_ps,
        write_time,
        "RTT to 10 RTT",
        "below an RTT every packet is late",
    ),
    Rule(
        "swift.ai", lambda _: 0.1, lambda _: 10, None, "0.1 to 10", "packets an RTT; htsim takes 1"
    ),
    Rule(
        "swift.beta", lambda _: 0.1, lambda _: 0.9, None, "0.1 to 0.9", "a share; htsim takes 0.8"
    ),
    Rule(
        "credits.buffer",
        lambda own: 2 * own.frame_bytes,
        lambda _: CREDIT_LIMIT,
        write_size,
        "2 packets to 128 KiB",
        "a buffer must hold a packet; credits can express 2048 blocks of 64 bytes",
    ),
)
"""Every key with a sensible range; the first ending that fits a key counts."""
