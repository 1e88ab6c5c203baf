"""Counters of ports and hosts on a page: all counters of a few ports, sums over many."""

from __future__ import annotations

from emu.report.counters_view import MOST_SIDE_BY_SIDE, counters_view


def test_idle_ports_are_shown_beside_busy_ones() -> None:
    """Counters that are 0 everywhere are left out, the others are shown even where they are 0."""
    view = counters_view("Ports", {"a": {"rx": 5, "tx": 0}, "b": {"rx": 0, "tx": 0}, "c": {}})
    assert view.by_name == {"a": {"rx": 5}, "b": {"rx": 0}, "c": {"rx": 0}}
    assert not view.summed.rows


def test_sums_over_many_ports_name_the_largest() -> None:
    many = {f"p{n}": {"rx": n, "tx": 0} for n in range(MOST_SIDE_BY_SIDE + 1)}
    view = counters_view("Ports", many)
    assert not view.by_name
    (row,) = view.summed.rows
    last = MOST_SIDE_BY_SIDE
    expected = ["rx", f"{last * (last + 1) // 2:,}", f"{last}", f"p{last}"]
    assert [cell.text for cell in row] == expected
