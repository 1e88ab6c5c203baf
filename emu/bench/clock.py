"""The virtual clock: link hops per second of processor time, on one thread.

A link hop is a packet, with data or without, that a host or a switch has sent. The transport is
complete and PFC is on; payloads and ICRCs are elided. The time to build the fabric is not counted.

Baseline: none in this run. To reach: 8 million per second, and with 1024 hosts at least 0.6 of
the rate with 16.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from emu.bench.row import Row, Target
from emu.runtime.virtual import STEP_NS, VirtualFabric
from emu.spec.scenario import Spec

TARGET = Target(8e6)
GROWTH = Target(0.6)
_TURNS = 7
_TURNS_OF_GROWTH = 3
_SHAPES = {16: (4, 4, 4), 64: (8, 8, 8), 512: (16, 32, 16), 1024: (16, 64, 16)}
"""Hosts -> spines, leaves, hosts on each leaf. Each leaf has as many uplinks as hosts."""
_HOSTS_A_TURN = 128
"""A turn of a small fabric consists of several runs, because one run takes only milliseconds."""


def measure(*, quick: bool) -> list[Row]:
    incast = {"pattern": "incast", "from": "h2-h8", "to": "h1", "size": "4MB"}
    permutation = {"pattern": "permutation", "among": "h1-h16", "size": "40MB"}
    return [
        _row("virtual clock, incast 7 x 4 MB", _spec((2, 2, 4), incast)),
        _row("virtual clock, permutation 16 x 40 MB", _spec((2, 2, 8), permutation)),
    ]


def measure_growth(*, quick: bool) -> list[Row]:
    """Every size has the same number of packets per host, and the same uplink capacity per host.

    The sizes take turns, so that other load on the machine slows all of them.
    """
    rates: dict[int, list[float]] = {hosts: [] for hosts in _SHAPES if hosts <= 64 or not quick}
    for _ in range(_TURNS_OF_GROWTH):
        for hosts, measured in rates.items():
            permutation = {"pattern": "permutation", "among": f"h1-h{hosts}", "size": "4MB"}
            spec = _spec(_SHAPES[hosts], permutation)
            measured.append(_rate(spec, max(1, _HOSTS_A_TURN // hosts)))
    smallest = median(rates[16])
    return [
        Row(
            f"virtual clock, {hosts} hosts x 4 MB, against 16",
            "link hops/s",
            median(measured),
            smallest,
            GROWTH,
            details={"measured": measured},
        )
        for hosts, measured in rates.items()
    ]


def _row(figure: str, spec: Spec) -> Row:
    rates = [_rate(spec) for _ in range(_TURNS)]
    return Row(figure, "link hops/s", median(rates), target=TARGET, details={"measured": rates})


def _spec(shape: tuple[int, int, int], traffic: dict[str, Any]) -> Spec:
    """`shape`: spines, leaves, hosts on each leaf."""
    spines, leaves, hosts_per_leaf = shape
    return Spec.model_validate(
        {
            "name": "bench",
            "payload": "elided",
            "time_limit": "1s",
            "topology": {
                "kind": "leaf-spine",
                "spines": spines,
                "leaves": leaves,
                "hosts_per_leaf": hosts_per_leaf,
            },
            "switches": {"buffer": "8MB", "pfc": {}},
            "traffic": [{"name": "traffic", **traffic}],
        }
    )


def _rate(spec: Spec, runs: int = 1) -> float:
    """Link hops per second of processor time, over several runs."""
    measured = [_run(spec) for _ in range(runs)]
    return sum(hops for hops, _ in measured) / sum(seconds for _, seconds in measured)


def _run(spec: Spec) -> tuple[int, float]:
    """Link hops of a run, and the seconds of processor time that it took."""
    topology = spec.topology.build()
    with VirtualFabric(spec, topology) as run:
        run.start()
        began = time.process_time()
        while not run.finished:
            run.run_until(run.now_ns + STEP_NS)
        spent = time.process_time() - began
        return sum(_sent(run)), spent


def _sent(run: VirtualFabric) -> Iterator[int]:
    """Packets that each port has sent."""
    for ports in run.topology.ports.values():
        for port in ports:
            yield sum(run.fabric.counters(port)["tx_packets"])
