"""Tables of a running fabric for the prompt: `queues`, `pause`, `cnp`, `counters`.

The shim takes a snapshot (`ports_snapshot`). The other functions turn it into lines of text, with a
row for each port and priority that is not zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from emu.bindings.fabric import Fabric
from emu.lab.ipc.queries import PortSnapshot, PortsSnapshot
from emu.measure.counters import PORT_COUNTERS, PRIORITIES
from emu.spec.diagnostic import unknown_name

Row = Sequence[object]


def ports_snapshot(fabric: Fabric) -> PortsSnapshot:
    """The counters, queues and buffer of every switch port at this moment."""
    name = PORT_COUNTERS[fabric.spec.fabric_kind.framing]
    ports = fabric.topology.switch_ports
    counters = name(fabric.counter_table(ports))
    seen = {
        port_name: PortSnapshot(
            own,
            queued=tuple(fabric.queued(port, tc) for tc in PRIORITIES),
            held=tuple(fabric.held(port, tc) for tc in PRIORITIES),
            paused=tuple(fabric.paused(port, tc) for tc in PRIORITIES),
        )
        for port, (port_name, own) in zip(ports, counters.items(), strict=True)
    }
    return PortsSnapshot(fabric.now_ns, seen)


def queues(seen: PortsSnapshot) -> list[str]:
    """The bytes in each queue, and the bytes of the buffer that each priority occupies."""
    rows = [
        (port, queue, own.queued[queue], own.held[queue])
        for port, own in seen.ports.items()
        for queue in PRIORITIES
        if own.queued[queue] or own.held[queue]
    ]
    return _table(("port", "queue", "queued", "held of the buffer"), rows)


def pause(seen: PortsSnapshot) -> list[str]:
    """Pause frames in each direction, how long they paused (us), and what is paused now."""
    return _table(
        ("port", "priority", "rx pause", "tx pause", "paused us", "pausing us", "now"),
        _pauses(seen),
    )


def _pauses(seen: PortsSnapshot) -> Iterator[Row]:
    for port, own in seen.ports.items():
        counters, paused = own.counters, own.paused
        if _is_global(counters):
            yield _pause(port, "all", "global", counters, any(paused))
            continue
        for priority in PRIORITIES:
            row = _pause(port, priority, f"prio{priority}", counters, paused[priority])
            if row[2] or row[3] or row[-1]:
                yield row


def _is_global(counters: Mapping[str, int]) -> bool:
    """Whether a port's pauses are those of 802.3x, which stop all priorities."""
    return "rx_global_pause_duration" in counters or "tx_global_pause_duration" in counters


def _pause(
    port: str, priority: object, prefix: str, counters: Mapping[str, int], paused: bool
) -> Row:
    counts = (
        counters.get(f"{way}_{prefix}_{what}", 0)
        for what in ("pause", "pause_duration")
        for way in ("rx", "tx")
    )
    return port, priority, *counts, "paused" if paused else ""


def cnp(seen: PortsSnapshot, priority: int) -> list[str]:
    """Packets marked CE, and packets of the priority of CNPs."""
    rows = [
        (port, marked, rx, tx)
        for port, own in seen.ports.items()
        for marked, rx, tx in [_marks(own.counters, priority)]
        if marked or rx or tx
    ]
    columns = ("port", "marked CE", f"rx on priority {priority}", f"tx on priority {priority}")
    return _table(columns, rows)


def _marks(counters: Mapping[str, int], priority: int) -> tuple[int, int, int]:
    marked = sum(counters.get(f"tx_prio{n}_ecn_marked", 0) for n in PRIORITIES)
    rx, tx = (counters.get(f"{way}_prio{priority}_packets", 0) for way in ("rx", "tx"))
    return marked, rx, tx


def counters(seen: PortsSnapshot, wanted: str) -> list[str]:
    """The counters of the ports whose names begin with `wanted`, or an error line."""
    if not any(port.startswith(wanted) for port in seen.ports):
        return [unknown_name("port", wanted, list(seen.ports))]
    rows = [
        (port, name, count)
        for port, own in seen.ports.items()
        for name, count in own.counters.items()
        if count and port.startswith(wanted)
    ]
    return _table(("port", "counter", "count"), rows)


def _table(columns: Sequence[str], rows: Iterable[Row]) -> list[str]:
    lines = [columns, *([str(cell) for cell in row] for row in rows)]
    if len(lines) == 1:
        return ["nothing so far"]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
