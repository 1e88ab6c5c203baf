"""TCP flows between the hosts of a lab, as a baseline for RDMA over the same cables.

    sender ── kernel of h1 ── h1-eth0, or ib0 ══ fabric ══ kernel of h2 ── receiver

All senders and receivers are in this process; only their sockets are in the hosts'
namespaces. Congestion control is CUBIC, Linux's default, if the kernel has it.

The kernels' clocks are real. At slowdown 1000 the minimum retransmission timeout of 200 ms is
200 us of emulated time: TCP recovers from a loss sooner than on a real fabric. A note reports this.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from selectors import DefaultSelector

from emu.lab.netns import entered
from emu.lab.tcp.stream import Block, Stream
from emu.measure.records import FlowRecord
from emu.measure.run_progress import RunProgress
from emu.spec.scenario import Spec
from emu.units import format_time_ns

_CONGESTION_CONTROL = b"cubic"
_NAME_BYTES = 16
_RTO_MIN_NS = 200_000_000
"""Linux's TCP_RTO_MIN."""
_STEP = 4099
"""The distance of the streams' offsets in the block, in bytes."""
_SECONDS_BETWEEN_PROGRESS = 0.1


@dataclass(frozen=True)
class EmulatedClock:
    """Emulated time. `zero_ns`: its zero, on CLOCK_MONOTONIC."""

    zero_ns: int
    slowdown: float

    def now_ns(self) -> int:
        return round((time.monotonic_ns() - self.zero_ns) / self.slowdown)

    def seconds_until(self, at_ns: int) -> float:
        """Real seconds until an emulated time; 0 if it has passed."""
        return max(0.0, (at_ns - self.now_ns()) * self.slowdown / 1e9)


class Streams:
    """All TCP flows of a spec."""

    def __init__(self, spec: Spec, tasks: Mapping[str, int]) -> None:
        """`tasks`: a process or thread in each host's namespace."""
        self._spec = spec
        self._tasks = tasks
        graph, block, hosts = spec.streams(), Block(Random(spec.seed)), spec.topology.build().host
        self._streams = []
        for index, flow in enumerate(graph.flows):
            sender = self._socket(flow.bytes_from, flow.priority)
            listener = self._socket(flow.bytes_to, flow.priority)
            listener.bind((str(hosts[flow.bytes_to].ip), 0))
            listener.listen(1)
            start_ns = int(graph.not_before_ns[flow.operations.start])
            size = graph.bytes_of(flow)
            self._streams.append(
                Stream(flow, size, start_ns, block, index * _STEP, sender, listener)
            )
        name = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_BYTES)
        self._congestion_control = name.rstrip(b"\0").decode()

    def run(
        self, clock: EmulatedClock, on_progress: Callable[[RunProgress], None]
    ) -> list[FlowRecord]:
        """Carries out all flows. Returns when all are over, or at the spec's time limit."""
        limit_ns = self._spec.time_limit_ps // 1000
        waiting = sorted(self._streams, key=lambda stream: stream.start_ns)
        report_at = time.monotonic()
        with DefaultSelector() as selector:
            while clock.now_ns() < limit_ns and not all(one.over for one in self._streams):
                while waiting and waiting[0].start_ns <= clock.now_ns():
                    waiting.pop(0).begin(selector)
                next_ns = waiting[0].start_ns if waiting else limit_ns
                wait_s = min(clock.seconds_until(next_ns), _SECONDS_BETWEEN_PROGRESS)
                for key, _ in selector.select(wait_s):
                    key.data(selector, clock.now_ns())
                if time.monotonic() >= report_at:
                    report_at = time.monotonic() + _SECONDS_BETWEEN_PROGRESS
                    on_progress(self._progress(clock.now_ns()))
        now_ns = clock.now_ns()
        return [stream.record(now_ns) for stream in self._streams]

    def _progress(self, now_ns: int) -> RunProgress:
        return RunProgress(
            emulated_ns=now_ns,
            bytes_done=sum(stream.received for stream in self._streams),
            bytes_total=sum(stream.size_bytes for stream in self._streams),
            flows_done=sum(stream.over for stream in self._streams),
            flows_total=len(self._streams),
        )

    def note(self, slowdown: float) -> str:
        """A note for the reader of the results."""
        return (
            f"TCP flows use this kernel's TCP, with {self._congestion_control}; its timers run in "
            f"real time: its minimum retransmission timeout, {format_time_ns(_RTO_MIN_NS)}, "
            f"is {format_time_ns(round(_RTO_MIN_NS / slowdown))} of emulated time"
        )

    def _socket(self, host: str, priority: int | None) -> socket.socket:
        with entered(self._tasks[host]):
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        with suppress(OSError):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _CONGESTION_CONTROL)
        if priority is not None:
            tos = self._spec.dscp(host, priority) << 2
            made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        return made
