"""The counters of ports under the names that operators already graph.

    Ethernet     ethtool's, as mlx5 has them: rx_prio3_pause, tx_prio3_bytes, ...
    InfiniBand   the PMA's: PortXmitData, PortXmitWait, ...

A frame that is too short for its headers and CRCs, or longer than any may be, is refused at the
port that receives it, and counted in rx_undersize_pkts and rx_oversize_pkts (Ethernet) or
PortMalformedPacketErrors (perfquery's PortRcvErrorDetails, which also counts packets on a lane that
the port lacks).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from emu.fabric_kind import Framing
from emu.measure.counter_groups import (
    Cells,
    Group,
    ReadCounter,
    ethernet_groups,
    infiniband_groups,
)
from emu.measure.counter_table import CLASSES, PORT, numbered, with_number
from emu.measure.raw_counters import CounterTable, RawCounters
from emu.measure.records import Counters

PRIORITIES = range(CLASSES[Framing.ETHERNET])
XMIT_WAIT = "PortXmitWait"
_PORTS_AT_A_TIME = 2048
"""What is computed for all ports of a large fabric at once takes more memory than the fabric."""


def ethernet_counters(
    ports: Mapping[str, RawCounters], *, whole: bool = False
) -> dict[str, Counters]:
    """RoCE ports' counters by port. Priorities that nothing used are left out unless `whole`, and
    what global pauses did where there were none."""
    return _named(ports, lambda read, _: ethernet_groups(read, whole=whole))


def infiniband_counters(
    ports: Mapping[str, RawCounters], *, vls: int | Sequence[int] = 0
) -> dict[str, Counters]:
    """InfiniBand ports' counters by port, all VLs together, and those of each VL that was used or
    is one of the first `vls`, of all ports or of each."""
    of_port = np.broadcast_to(np.reshape(vls, (-1, 1)), (len(ports), 1))
    return _named(ports, lambda read, rows: infiniband_groups(read, vls=of_port[rows]))


def lost_in_transit(ports: CounterTable) -> int:
    """Packets of ports that the emulator lost: Open vSwitch did not return them, or had no room
    for them."""
    return sum(ports.total(row.name) for row in PORT.machine_losses)


PORT_COUNTERS: dict[Framing, Callable[[Mapping[str, RawCounters]], dict[str, Counters]]] = {
    Framing.ETHERNET: ethernet_counters,
    Framing.INFINIBAND: infiniband_counters,
}
"""A framing's counters by port, from the core's."""


def counter_names(framing: Framing) -> frozenset[str]:
    """All names that a port's counters may have on this framing, those of unused classes and lanes
    included."""
    return frozenset(numbered(PORT.described[framing], framing))


def _named(
    ports: Mapping[str, RawCounters], groups_of: Callable[[ReadCounter, slice], Sequence[Group]]
) -> dict[str, Counters]:
    """What ports show of the groups of their counters. `groups_of`: the groups of some rows."""
    table, named = CounterTable.of(ports), dict[str, Counters]()
    for first in range(0, len(table), _PORTS_AT_A_TIME):
        rows = slice(first, first + _PORTS_AT_A_TIME)
        some = table.between(rows.start, rows.stop)
        groups = groups_of(some.counter, rows)
        names = [name for group in groups for name in _names(group)]
        values, shown = map(np.hstack, zip(*map(_side_by_side, groups), strict=True))
        named.update(zip(some, _rows(names, values, shown), strict=True))
    return named


def _rows(names: Sequence[str], values: Cells, shown: NDArray[np.bool_]) -> list[Counters]:
    """Each port's counters. Ports that show the same names are done together."""
    alike: dict[bytes, list[int]] = {}
    for row, own in enumerate(shown):
        alike.setdefault(own.tobytes(), []).append(row)
    counters: list[Counters] = [{} for _ in shown]
    for rows in alike.values():
        own = shown[rows[0]]
        own_names = list(compress(names, own))
        for row, cells in zip(rows, values[np.ix_(rows, own)].tolist(), strict=True):
            counters[row] = dict(zip(own_names, cells, strict=True))
    return counters


def _names(group: Group) -> list[str]:
    cells, _ = next(iter(group.values()))
    return [with_number(name, number) for number in range(cells.shape[1]) for name in group]


def _side_by_side(group: Group) -> tuple[Cells, NDArray[np.bool_]]:
    """The cells of a group, and whether they are shown: (ports, names)."""
    cells = np.stack([cells for cells, _ in group.values()], axis=2)
    shown = [np.broadcast_to(shown, cells.shape[:2]) for _, shown in group.values()]
    rows = len(cells)
    return cells.reshape(rows, -1), np.stack(shown, axis=2).reshape(rows, -1)
