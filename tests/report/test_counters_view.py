"""Counters of ports and hosts on a page: all of few, sums of many."""

from __future__ import annotations

from emu.report.counters_view import MOST_SIDE_BY_SIDE, counters_view


def test_an_idle_port_stands_beside_a_busy_one() -> None:
    """With the same counters, those at 0 too; what nothing moved is left out."""
    view = counters_view("Ports", {"a": {"rx": 5, "tx": 0}, "b": {"rx": 0, "tx": 0}, "c": {}})
    assert view.by_name == {"a": {"rx": 5}, "b": {"rx": 0}, "c": {"rx": 0}}
    assert not view.summed.rows


def test_many_ports_are_summed_and_the_one_with_most_named() -> None:
    many = {f"p{n}": {"rx": n, "tx": 0} for n in range(MOST_SIDE_BY_SIDE + 1)}
    view = counters_view("Ports", many)
    assert not view.by_name
    (row,) = view.summed.rows
    last = MOST_SIDE_BY_SIDE
    expected = ["rx", f"{last * (last + 1) // 2:,}", f"{last}", f"p{last}"]
    assert [cell.text for cell in row] == expected
