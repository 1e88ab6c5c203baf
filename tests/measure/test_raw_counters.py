"""Raw counters of many ports in one table, and their public names."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from emu.measure.counters import ethernet_counters, infiniband_counters
from emu.measure.raw_counters import CounterTable
from tests.support.small_fabrics import ONE_SWITCH, finish, spec_of, started

INCAST = """
traffic: [{name: incast, pattern: incast, from: h2-h5, to: h1, op: write, size: 400KB}]
"""
RUNS = (
    ("fabric=roce", "switches.pfc={xoff: 48KB, xon: 24KB}"),
    ("fabric=roce", "switches.pfc={frames: pause, xoff: 48KB, xon: 24KB}"),
    ("fabric=ib", "switches.credits.vls=2"),
)
PORTS = {"a": {"packets": [1, 2], "lost": [7]}, "b": {"packets": [3, 4], "lost": [8]}}


def test_table_is_read_by_port_and_by_counter() -> None:
    """Also after another process has sent it."""
    table = pickle.loads(pickle.dumps(CounterTable.of(PORTS)))
    assert table == PORTS
    assert table.counter("packets").tolist() == [[1, 2], [3, 4]]
    assert table.total("packets") == 10


def test_tables_are_selected_and_joined_by_port() -> None:
    """In any order; a part without ports adds nothing, not even counters."""
    table = CounterTable.of(PORTS)
    chosen = table.only(["b", "a"])
    assert list(chosen.items()) == [("b", PORTS["b"]), ("a", PORTS["a"])]
    assert CounterTable.joined([{}, table.only(["a"]), {"b": PORTS["b"]}]) == PORTS


def test_total_of_many_ports_can_exceed_64_bits() -> None:
    """As waits in picoseconds do, in a large lab that is up for days."""
    days_ps = 2**62
    ports = {name: {"xmit_wait": [days_ps]} for name in "abcd"}
    assert CounterTable.of(ports).total("xmit_wait") == 4 * days_ps


@pytest.mark.parametrize("settings", RUNS)
def test_ports_have_the_same_names_together_and_alone(settings: tuple[str, ...]) -> None:
    """Used, unused and paused ports; the counts are Python's int, as JSON needs them."""
    named: Any = infiniband_counters if "fabric=ib" in settings else ethernet_counters
    with started(spec_of(ONE_SWITCH + INCAST, *settings)) as run:
        finish(run)
        ports = run.observe().ports
    together = named(ports)
    assert together == {name: named({name: own})[name] for name, own in ports.items()}
    assert [list(own) for own in together.values()] == [
        list(named({name: own})[name]) for name, own in ports.items()
    ]
    assert {type(count) for own in together.values() for count in own.values()} == {int}
    assert len({tuple(own) for own in together.values()}) > 1


def test_no_ports_have_no_counters() -> None:
    assert ethernet_counters({}) == infiniband_counters({}) == {}


def test_each_port_has_its_own_number_of_lanes() -> None:
    """For hosts whose leaves differ in lanes."""
    with started(spec_of(ONE_SWITCH + INCAST, "fabric=ib")) as run:
        two = CounterTable.of(run.observe().ports).only(["h1:s1", "h2:s1"])
    own = infiniband_counters(two, vls=[1, 2])
    lanes = [[name for name in own[port] if "_VL" in name] for port in two]
    assert lanes == [["PortXmitWait_VL0"], ["PortXmitWait_VL0", "PortXmitWait_VL1"]]
    assert np.array_equal(two.cells[0], two.cells[1])
