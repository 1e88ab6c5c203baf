"""A fabric in parts on the virtual clock: threads, caches, and how the work is spread.

The fabric is the shipped fat tree of 1,024 hosts under a random permutation. Its packet-hops
per second of wall-clock time are measured in the middle of the run: with two threads, beside one
thread; and on one thread in parts of 128 hosts, beside one piece.

How far more threads can help is counted, not timed: in a window of time no thread can be done
before its part is, so the speed-up is at most all events by those of the busiest part of each
window. That is the same on every machine. It is counted for a fat tree of 8,192 hosts, too, under
the shipped permutation.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from emu._core import ffi, lib
from emu.bench.row import Row, Target, side_by_side
from emu.runtime.virtual import VirtualFabric
from emu.spec.load import load_spec
from emu.spec.scenario import Spec

THREADS = Target(1.7)
_SPEC = Path(__file__).parents[2] / "topologies/fat-tree-1024.emu.yml"
_HOSTS = 1024
_PERMUTATION = (
    "traffic=[{name: permutation, pattern: permutation, among: h1-h1024, size: 16MB}]",
    "verify=[]",
)
_PARTS = _HOSTS // 128
_WARM_NS, _END_NS = 30_000, 130_000
"""What is between is measured: all queues are as full as they get."""
_COUNTED_NS = 30_000
_LARGE = Path(__file__).parents[2] / "examples/large/fat-tree-8192.emu.yml"
_LARGE_COUNTED_NS = 15_000
_TURNS = 3
_CUTS = (2, 4, 8, 16, 32, 64)


def measure(*, quick: bool) -> list[Row]:
    spec = load_spec(_SPEC, _PERMUTATION)
    piece, one, two = [], [], []
    for _ in range(1 if quick else _TURNS):
        piece.append(_rate(spec, 1, 1))
        one.append(_rate(spec, 1, _PARTS))
        two.append(_rate(spec, 2, _PARTS))
    return [
        side_by_side(f"{_HOSTS:,} hosts, 2 threads against 1", "hops/s", two, one, THREADS),
        side_by_side(
            f"{_HOSTS:,} hosts, {_PARTS} parts against one piece", "hops/s", one, piece, None
        ),
        *_counted(spec, _CUTS[:3] if quick else _CUTS, _COUNTED_NS),
        *([] if quick else _counted(load_spec(_LARGE), _CUTS, _LARGE_COUNTED_NS)),
    ]


def _rate(spec: Spec, threads: int, parts: int) -> float:
    """Packet-hops per second."""
    with VirtualFabric(spec, spec.topology.build(), threads=threads, parts=parts) as run:
        run.start()
        run.run_until(_WARM_NS)
        before, began = _sent(run), time.monotonic()
        run.run_until(_END_NS)
        seconds = time.monotonic() - began
        return (_sent(run) - before) / seconds


def _sent(run: VirtualFabric) -> int:
    """Packets that the ports of switches have sent so far."""
    ports = [port for port in run.topology.peer if port.node in run.topology.switch]
    return int(run.fabric.counter_table(ports).counter("tx_packets").sum())


def _counted(spec: Spec, cuts: Iterable[int], until_ns: int) -> Iterable[Row]:
    """A row for each number of parts: the largest speed-up that their balance allows."""
    topology = spec.topology.build()
    for parts in cuts:
        with VirtualFabric(spec, topology, threads=1, parts=parts) as run:
            run.start()
            run.run_until(until_ns)
            balance = lib.fabric_balance(run.fabric.core)
            events = sum(ffi.unpack(balance.events, parts))
            yield Row(
                f"{len(topology.hosts):,} hosts, {parts} parts: speed-up that the balance allows",
                "",
                events / balance.busiest_events,
                details={
                    "lookahead_ps": balance.lookahead_ps,
                    "windows": balance.windows,
                    "events_in_a_window": events / balance.windows,
                },
            )
