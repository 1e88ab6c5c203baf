"""Columns of varied keys: numbers in base units, or words."""

from __future__ import annotations

import pytest

from emu.sweeps.units import key_column


@pytest.mark.parametrize(
    ("key", "values", "name", "cells"),
    [
        ("switches.ecn.kmin", ["20KB", 96_000], "switches.ecn.kmin_bytes", [20_000, 96_000]),
        ("switches.pfc.xoff", ["20KB", "1MB"], "switches.pfc.xoff_bytes", [20_000, 1_000_000]),
        ("switches.pfc.xoff", ["20KB", "alpha 1"], "switches.pfc.xoff", ["20KB", "alpha 1"]),
        ("switches.ecn.pmax", ["20%", 0.5, "1/8"], "switches.ecn.pmax", [0.2, 0.5, 0.125]),
        ("topology.links.host.rate", ["25Gbit"], "topology.links.host.rate_bps", [25e9]),
        ("topology.links.host.delay", ["1us"], "topology.links.host.delay_ns", [1000]),
        ("traffic.incast.size", ["2MB"], "traffic.incast.size_bytes", [2_000_000]),
        ("topology.spines", [1, 2], "topology.spines", [1, 2]),
        ("hosts.nic.cc", ["dcqcn", "none"], "hosts.nic.cc", ["dcqcn", "none"]),
        ("traffic.incast.from", [["h2", "h3"]], "traffic.incast.from", ['["h2", "h3"]']),
    ],
)
def test_columns_have_the_unit_of_the_key(
    key: str, values: list[object], name: str, cells: list[object]
) -> None:
    column = key_column(key, values)
    assert column.name == name
    assert [column.cell(value) for value in values] == cells
    assert column.is_number == all(isinstance(cell, int | float) for cell in cells)
