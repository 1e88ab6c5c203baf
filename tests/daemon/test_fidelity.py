"""Losses inside the emulator make a run inconclusive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from emu.daemon.fidelity import fidelity_between, timing_of_shim
from emu.lab.ipc.queries import ShimTiming
from emu.measure.raw_counters import CounterTable, RawCounters
from emu.measure.records import Fidelity
from tests.support.lab_recording import SPEC, TOPOLOGY, at_the_start, recorded
from tests.support.observations import histogram, observation
from topologies.graph import Port

NOTHING = {"transit_lost": [0], "transit_overflow": [0]}


def of_a_run(counted: RawCounters) -> Fidelity:
    seen = at_the_start()
    ports = {**seen.ports, "left:right": {**seen.ports["left:right"], **counted}}
    timing = observation(histogram(1)).timing
    return recorded(replace(seen, ports=ports, timing=timing)).fidelity


def share_of(now: Mapping[str, RawCounters]) -> ShimTiming:
    """The timing of a shim whose ports have these counters, and 0 otherwise."""

    def counter_table(ports: Iterable[Port]) -> CounterTable:
        names = [TOPOLOGY.port_name[port] for port in ports]
        return CounterTable.of({name: {**NOTHING, **now.get(name, {})} for name in names})

    fabric: Any = SimpleNamespace(topology=TOPOLOGY, counter_table=counter_table)
    live: Any = SimpleNamespace(timing=lambda: observation(histogram(1)).timing)
    return timing_of_shim(fabric, live)


def of_an_interactive_lab(counted: RawCounters) -> Fidelity:
    before, after = share_of({}), share_of({"left:right": counted})
    return fidelity_between(SPEC, 1000.0, before, after, observation(histogram(1)))


@pytest.mark.parametrize("verdict", [of_a_run, of_an_interactive_lab])
@pytest.mark.parametrize("counter", NOTHING)
def test_packets_lost_by_open_vswitch_are_counted(
    verdict: Callable[[RawCounters], Fidelity], counter: str
) -> None:
    """The verdict's reasons give their number, here three."""
    assert verdict({}).verdict == "ok"
    found = verdict({counter: [3]})
    assert found.verdict == "inconclusive"
    assert [reason for reason in found.reasons if " lost 3 packets" in reason]
