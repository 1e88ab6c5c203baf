"""A running lab as a table that is drawn again and again.

    leaf1:h1   98.2 Gb/s   98%   204 KB    0 B    0%     12     31      4  ▁▃▇██▇
    port       rate and share of it  queue  buffer  held  pauses  CE    CNPs  over time

On InfiniBand, the columns for pauses and CE show credit updates and FECN. Rates,
queues and the share of time in which pause frames or missing credit held a port
back are of the latest interval. Counts are since the lab's start, and bold if they
grew in the latest interval. Times and rates are emulated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import pairwise

from rich.table import Table
from rich.text import Text

from emu.fabric_kind import FabricKind, FlowControl, Framing
from emu.measure.counter_table import PORT
from emu.measure.lab_snapshot import LabSnapshot, TrafficState
from emu.report.progress import share_done
from emu.report.short import short_count
from emu.units import format_rate, format_size, format_time_ns
from topologies.graph import Port, Topology

_BARS = " ▁▂▃▄▅▆▇█"
_ROOMY = 100
"""A terminal with fewer columns than this leaves out `_FOR_ROOMY`."""
_FOR_ROOMY = ("load", "buffer")
_WIDTHS = {"rate": 10, "load": 4, "queue": 8, "buffer": 8, "held": 4}
"""The width of each column that is not a count."""
_COUNT_WIDTH = 6
_SPARKS = "over time"
_MOST_SPARKS = 60
_TEXTS = ("port", _SPARKS)
_FLOW_CONTROL = {
    FlowControl.PAUSES: ("pauses", "tx_pause_frames", "paused"),
    FlowControl.CREDITS: ("updates", "tx_flow_control", "xmit_wait"),
}
"""The name of its messages, the counter of messages sent, and the counter of time held back."""
_MARKS = {Framing.ETHERNET: ("CE", "ecn_marked"), Framing.INFINIBAND: ("FECN", "fecn_marked")}
"""The name of a mark, and the counter of marked packets."""


class Watch:
    """Keeps the latest snapshots of a lab and draws them."""

    def __init__(self, name: str, topology: Topology, kind: FabricKind) -> None:
        self._name = name
        self._messages, self._messages_sent, self._held_ps = _FLOW_CONTROL[kind.flow_control]
        self._mark, self._marked = _MARKS[kind.framing]
        self._topology = topology
        self._snapshots: deque[LabSnapshot] = deque(maxlen=_MOST_SPARKS + 1)

    def add(self, snapshot: LabSnapshot) -> None:
        self._snapshots.append(snapshot)

    def table(self, width: int, height: int) -> Table:
        """The table for a terminal with this many columns and lines. Needs two snapshots."""
        shown = [name for name in self._columns() if width >= _ROOMY or name not in _FOR_ROOMY]
        widths = {name: _WIDTHS.get(name, max(_COUNT_WIDTH, len(name))) for name in shown}
        widths["port"] = max(map(len, self._topology.port_name.values()))
        widths[_SPARKS] = min(_MOST_SPARKS, width - sum(widths.values()) - len(widths))
        if widths[_SPARKS] < len(_SPARKS):
            del widths[_SPARKS]
        table = Table(
            title=self._title(), title_justify="left",
            box=None, pad_edge=False, collapse_padding=True,
        )  # fmt: skip
        for name, least in widths.items():
            table.add_column(
                name, justify="left" if name in _TEXTS else "right", min_width=least, no_wrap=True
            )
        for port in self._busiest(height - 3):
            cells = self._cells(port)
            cells[_SPARKS] = Text(self._sparkline(port, widths.get(_SPARKS, 0)))
            table.add_row(*(cells[name] for name in widths))
        return table

    # ---- the contents ------------------------------------------------------

    def _title(self) -> str:
        now = self._snapshots[-1]
        return f"{self._name}  emulated {format_time_ns(now.time_ns)}  {_traffic(now.traffic)}"

    def _columns(self) -> Sequence[str]:
        counts = (self._messages, self._mark, "CNPs", "drops")
        return ("port", "rate", "load", "queue", "buffer", "held", *counts)

    def _busiest(self, room: int) -> list[Port]:
        """The `room` busiest ports, in the fabric's order."""
        ports = self._topology.switch_ports
        sent = {port: self._counter(port, "tx_wire_bytes") for port in ports}
        chosen = set(sorted(ports, key=sent.__getitem__, reverse=True)[: max(1, room)])
        return [port for port in ports if port in chosen]

    def _cells(self, port: Port) -> dict[str, Text]:
        """The cells of a port's row, by column."""
        rate_bps = self._rates(port)[-1]
        load = rate_bps / self._topology.cable[port].rate_bps
        held = self._held(port)
        cells = (
            Text(self._topology.port_name[port]),
            Text(format_rate(rate_bps) if rate_bps else "-"),
            Text(f"{load:.0%}" if rate_bps else "-", style="bold" if load > 0.9 else ""),
            _size(self._counter(port, "queued_bytes")),
            _size(self._counter(port, "held_bytes")),
            Text(f"{held:.0%}" if held else "-", style="yellow" if held > 0.01 else ""),
            *(
                Text(_count(now), style="bold" if now > was else "")
                for was, now in self._counts(port)
            ),
        )
        return dict(zip(self._columns(), cells, strict=True))

    def _counts(self, port: Port) -> Iterable[tuple[int, int]]:
        """Pairs of counts: before the latest interval, and now."""
        yield self._change(port, self._messages_sent)
        yield self._change(port, self._marked)
        yield self._cnps(port)
        yield self._change(port, *(row.name for row in PORT.drops()))

    def _cnps(self, port: Port) -> tuple[int, int]:
        """CNPs that the host at the other end sent: before the latest interval, and now."""
        host = self._topology.peer[port].node
        before, now = (
            snapshot.hosts.get(host, {}).get("np_cnp_sent", 0) for snapshot in self._latest()
        )
        return before, now

    def _held(self, port: Port) -> float:
        """The share of the latest interval in which pauses or missing credit stopped the port."""
        before, now = self._change(port, self._held_ps)
        elapsed_ps = (self._snapshots[-1].time_ns - self._snapshots[-2].time_ns) * 1000
        return min(1.0, (now - before) / elapsed_ps) if elapsed_ps else 0.0

    def _sparkline(self, port: Port, width: int) -> str:
        top = self._topology.cable[port].rate_bps
        return sparkline([rate / top for rate in self._rates(port)[-width:]])

    def _rates(self, port: Port) -> list[float]:
        """Bits per second in each remembered interval."""
        name = self._topology.port_name[port]
        return [
            (b.ports[name]["tx_wire_bytes"][0] - a.ports[name]["tx_wire_bytes"][0])
            * 8e9
            / max(1, b.time_ns - a.time_ns)
            for a, b in pairwise(self._snapshots)
        ]

    def _counter(self, port: Port, *names: str) -> int:
        return self._change(port, *names)[1]

    def _change(self, port: Port, *names: str) -> tuple[int, int]:
        """The sum of these counters over all classes, before the latest interval and now."""
        own = self._topology.port_name[port]
        before, now = (
            sum(sum(snapshot.ports[own][name]) for name in names) for snapshot in self._latest()
        )
        return before, now

    def _latest(self) -> tuple[LabSnapshot, LabSnapshot]:
        return self._snapshots[-2], self._snapshots[-1]


def sparkline(shares: Iterable[float]) -> str:
    """A bar character for each share from 0 to 1; a blank for 0."""
    steps = len(_BARS) - 1
    return "".join(_BARS[min(steps, -(-int(share * 1000) * steps // 1000))] for share in shares)


def _count(count: int) -> str:
    return short_count(count) if count else "-"


def _size(count: int) -> Text:
    return Text(format_size(count) if count else "-")


def _traffic(traffic: TrafficState) -> str:
    if traffic.state == "running" and traffic.progress:
        done = traffic.progress
        return f"traffic {share_done(done):.0%}, {done.flows_done} of {done.flows_total} flows"
    return {"none": "no traffic yet", "running": "traffic starts"}.get(
        traffic.state, f"traffic {traffic.state}"
    )
