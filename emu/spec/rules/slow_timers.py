"""Retransmission timers that cannot fire before the run is over, where switches may drop.

When the last packets of a message are lost, the receiver misses nothing and sends no NAK. Only the
sender's timer notices, 4.096 us * 2^timeout later (IBTA vol 1, 9.7.6.1.3).
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.scenario import Spec
from emu.spec.traffic.entry import MessageEntry
from emu.units import PS_PER_NS, ack_timeout_ps, format_time_ns, write_time


def slow_timers(spec: Spec) -> Iterator[str]:
    """A sentence for the first entry of which a loss may last to the end of the run."""
    for entry in spec.traffic if spec.fabric == "roce" else ():
        reliable = not isinstance(entry, MessageEntry) or entry.transport == "rc"
        if not reliable or spec.by_tcp(entry) or len(entry.senders) < 2:
            continue
        for host in entry.senders:
            code = spec.host(host).nic.timeout
            if (
                _may_be_dropped(spec, host, entry.priority)
                and ack_timeout_ps(code) > spec.time_limit_ps
            ):
                yield (
                    f"{entry.name}: switches may drop what {host} sends, and its retransmission "
                    f"timer is {format_time_ns(ack_timeout_ps(code) / PS_PER_NS)} "
                    f"(hosts.nic.timeout: {code}), longer than the run (time_limit: "
                    f"{write_time(spec.time_limit_ps)}): a message whose "
                    f"last packet is lost stays unfinished; {_remedy(spec)}raise time_limit"
                )
                return


def _remedy(spec: Spec) -> str:
    """The longest timer that fires four times in the run."""
    codes = [code for code in range(1, 32) if 4 * ack_timeout_ps(code) <= spec.time_limit_ps]
    return f"set hosts.nic.timeout={codes[-1]}, or " if codes else ""


def _may_be_dropped(spec: Spec, host: str, asked: int | None) -> bool:
    """Whether the priority that its packets ride on has no PFC where they come in."""
    topology = spec.topology.build()
    pfc = spec.given_port(topology.peer[topology.ports[host][0]]).pfc
    return pfc is None or spec.priority(host, asked) not in pfc.priorities
