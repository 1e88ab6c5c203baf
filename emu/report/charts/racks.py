"""A heat map: how busy the cables to the hosts of each rack were over time.

    leaf1   ░▒▓██▓▒░
    leaf2   ░░▒▓▓▓▓▓
    leaf3   ░

A rack is the hosts on one switch. When there are more racks than rows, neighbours share a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from emu.measure.binning import Floats, bin_edges, rate_per_bin
from emu.report.charts.chart import Chart, TimeAxis, side_by_side, time_axis
from emu.report.charts.rates import MOST_FLOWS
from emu.report.charts.strips import BINS
from emu.report.figure import Axis, Plot
from emu.report.palette import LOAD, Legend, load_colour
from emu.report.run_view import RunFacts

FEWEST_RACKS, MOST_ROWS = 4, 32
_ROW_INCHES, _ASIDE_INCHES = 0.14, 0.75
_LEVELS = ("idle", "to 20 %", "40 %", "60 %", "80 %", "100 %")

Rows = dict[str, list[str]]
"""Label of a row -> the switch ports to its hosts."""


def racks(runs: Sequence[RunFacts]) -> Chart | None:
    """The heat map; None for few racks or few flows, which other charts show one by one."""
    if not runs or all(len(run.flows) <= MOST_FLOWS for run in runs):
        return None
    by_rack = _racks(runs[0])
    if len(by_rack) < FEWEST_RACKS:
        return None
    rows, time = _rows(by_rack), time_axis(runs)
    floors = list(reversed(range(len(rows))))
    labels = [(floor + 0.5, label) for floor, label in zip(floors, rows, strict=True)]
    height = _ASIDE_INCHES + _ROW_INCHES * len(rows)
    figure = side_by_side(runs, height, time, Axis(0, len(rows), labels=labels, grid=False))
    for run, plot in zip(runs, figure.plots, strict=True):
        _draw(plot, _shares(run, rows, time), time)
    together = "" if len(rows) == len(by_rack) else " A row is the mean of neighbouring racks."
    return Chart(
        title="Load of the racks",
        svg=figure.svg("How busy the cables to the hosts of each rack were over time"),
        legend=tuple(Legend(name, colour) for name, colour in zip(_LEVELS, LOAD, strict=True)),
        caption=f"How busy the cables from each switch to its hosts were.{together}",
    )


def _racks(run: RunFacts) -> Rows:
    """Each switch with hosts -> its ports to them, in the order of the topology."""
    topology = run.topology
    return {
        switch.name: ports
        for switch in topology.switches
        if (
            ports := [
                topology.port_name[port]
                for port in topology.ports[switch.name]
                if topology.peer[port].node in topology.host
            ]
        )
    }


def _rows(by_rack: Rows) -> Rows:
    names = list(by_rack)
    each = -(-len(names) // MOST_ROWS)
    rows: Rows = {}
    for _, numbered in groupby(enumerate(names), lambda item: item[0] // each):
        own = [name for _, name in numbered]
        label = own[0] if len(own) == 1 else f"{own[0]} to {own[-1]}"
        rows[label] = [port for name in own for port in by_rack[name]]
    return rows


def _shares(run: RunFacts, rows: Rows, time: TimeAxis) -> list[Floats]:
    """For each row (bins,): the bits sent, as a share of what the cables can carry."""
    series, topology = run.recording.series, run.topology
    place = {name: column for column, name in enumerate(series.ports)}
    edges = bin_edges(0, time.end_ns, BINS)
    shares = []
    for ports in rows.values():
        own = [port for port in ports if port in place]
        sent = rate_per_bin(
            series.time_ns, series.tx_bytes[:, [place[port] for port in own]], edges
        )
        rate_bps = sum(topology.cable[topology.port_named[port]].rate_bps for port in own)
        shares.append(np.minimum(sent.sum(axis=1) * 8e9 / max(1, rate_bps), 1.0))
    return shares


def _draw(plot: Plot, shares: Sequence[Floats], time: TimeAxis) -> None:
    """Draws adjacent cells of one colour as one rectangle."""
    edges = (bin_edges(0, time.end_ns, BINS) / time.unit.size).tolist()
    for number, own in enumerate(shares):
        middle = len(shares) - number - 0.5
        start = 0
        for colour, cells in groupby(map(load_colour, own.tolist())):
            end = start + len(list(cells))
            plot.bar((edges[start], edges[end]), middle, 0.92, colour)
            start = end
