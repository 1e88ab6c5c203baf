"""A port's counters under their public names: how they follow from the core's, and which are shown.

Most public names are counters of the core's table, or add up some of them. The others are computed
here:

    PortXmitData, PortRcvData   words of 4 bytes from the LRH to the ICRC, without flow-control
                                packets, as the standard has it
    rx_global_pause_duration    802.3x pauses stop all priorities at once. They are counted once,
                                and for no priority
    PFC_WD_STATUS, ..._LAST     what SONiC derives from the counts of storms

All functions work on many ports at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from emu._core import lib
from emu.fabric_kind import Framing
from emu.measure.counter_table import CLASSES, PORT, indexed

Cells = NDArray[np.int64]
"""(ports, classes), or (ports, 1)"""
ReadCounter = Callable[[str], Cells]
"""Gives a counter of the core by its name."""
Shown = NDArray[np.bool_] | bool
Group = dict[str, tuple[Cells, Shown]]
"""Counters that stand together, class by class: public name, with N for the class -> cells, and
which of them are shown."""

_WORD = 4
_VCRC_BYTES: int = lib.VCRC_BYTES
_OF_PAUSES = ("rx_pause_transition", "rx_pause_duration", "tx_pause_duration")
"""The core counts these by priority, for PFC and 802.3x."""
_STORMS = "prioN_PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"
_SENT_BY_LANE = ("PortVLOpPacketsN", "PortVLOpDataN")


def ethernet_groups(read: ReadCounter, *, whole: bool = False) -> list[Group]:
    """Priorities that nothing used are left out unless `whole`."""
    values = _counted(Framing.ETHERNET, read) | _of_storms(read)
    shown: dict[str, Shown] = {}
    for counter, is_global in _are_pauses_global(read).items():
        row, name = PORT.by_name[counter], f"{counter[:2]}_global_{counter[3:]}"
        values[name] = read(counter).max(axis=1, keepdims=True) // row.per_unit
        values |= {own: np.where(is_global, 0, values[own]) for own in row.roce}
        shown[name] = is_global
    names = PORT.described[Framing.ETHERNET]
    return [
        _of_priorities({name: values[name] for name in names if indexed(name)}, whole),
        {name: (values[name], shown.get(name, True)) for name in names if not indexed(name)},
    ]


def _of_priorities(values: Mapping[str, Cells], whole: bool) -> Group:
    """SAI's names are shown where there was a pause, SONiC's where there was a storm, the others
    where any of them is not 0."""
    source = {name: PORT.described[Framing.ETHERNET][name].source for name in values}
    derived = (lib.SAI_PORT, lib.SONIC_PFCWD)
    own = [cells for name, cells in values.items() if source[name] not in derived]
    of_sai = [cells for name, cells in values.items() if source[name] == lib.SAI_PORT]
    shown = {lib.SAI_PORT: np.any(of_sai, axis=0), lib.SONIC_PFCWD: values[_STORMS] != 0}
    used = np.any(own, axis=0) | whole
    return {name: (cells, shown.get(source[name], used)) for name, cells in values.items()}


def _of_storms(read: ReadCounter) -> dict[str, Cells]:
    """SONiC's state of each priority (1: stormed, 0: operational), and its counts of the last
    storm."""
    values = {"prioN_PFC_WD_STATUS": read("watchdog_detected") - read("watchdog_restored")}
    for counter in ("tx_packets", "rx_packets", "tx_dropped", "rx_dropped"):
        (name,) = PORT.by_name[f"watchdog_{counter}"].roce
        before = read(f"watchdog_{counter}_before")
        values[f"{name}_LAST"] = read(f"watchdog_{counter}") - before
    return {name: cells[:, : CLASSES[Framing.ETHERNET]] for name, cells in values.items()}


def _are_pauses_global(read: ReadCounter) -> dict[str, NDArray[np.bool_]]:
    """Counter of the core -> which ports count 802.3x pauses there. A port that obeys 802.3x has
    its priorities paused together; a pause frame alone proves nothing, as a port with PFC does not
    obey it. A port that pauses others does so for the priority that it pauses longest."""
    obeys = _total(read("paused")) < _total(read("rx_pause_duration"))
    sends = _total(read("tx_global_pause")) > 0
    return {name: sends if name.startswith("tx") else obeys for name in _OF_PAUSES}


def infiniband_groups(read: ReadCounter, *, vls: NDArray[np.int64] | int = 0) -> list[Group]:
    """Lanes that nothing used are left out unless they are among the first `vls`."""
    sent = read("tx_packets")
    values = _counted(Framing.INFINIBAND, read) | {
        "PortXmitData": _words(_total(read("tx_bytes")), _total(sent)),
        "PortRcvData": _words(_total(read("rx_bytes")), _total(read("rx_packets"))),
        "PortVLOpDataN": _words(read("tx_bytes"), sent),
    }
    wanted = np.arange(CLASSES[Framing.INFINIBAND]) < vls
    used = (sent != 0) | wanted
    by_lane: NDArray[np.bool_] = used & used[:, 1:].any(axis=1, keepdims=True)

    def shown(name: str) -> Shown:
        """What left by each lane is shown where there are several lanes."""
        if name in _SENT_BY_LANE:
            return by_lane
        if not indexed(name):
            return True
        moved: NDArray[np.bool_] = np.any(
            [read(row.name) for row in PORT.terms[Framing.INFINIBAND][name]], axis=0
        )
        return moved | wanted

    groups = groupby(PORT.described[Framing.INFINIBAND], _lane_group)
    return [{name: (values[name], shown(name)) for name in names} for _, names in groups]


def _lane_group(name: str) -> str:
    """Names that follow each other and have the same group stand side by side."""
    if name in _SENT_BY_LANE:
        return "sent"
    return name if indexed(name) else ""


def _counted(framing: Framing, read: ReadCounter) -> dict[str, Cells]:
    """The public names that are counters of the core, or add them up."""
    values: dict[str, Cells] = {}
    for name, terms in PORT.terms[framing].items():
        if terms:
            cells = [read(row.name) for row in terms]
            parts = [own[:, : CLASSES[framing]] if indexed(name) else _total(own) for own in cells]
            values[name] = np.sum(parts, axis=0) // terms[0].per_unit
    return values


def _words(octets: Cells, packets: Cells) -> Cells:
    """From the LRH to the ICRC, as PktLen counts: without the VCRC."""
    return (octets - _VCRC_BYTES * packets) // _WORD


def _total(cells: Cells) -> Cells:
    """Of all classes."""
    total: Cells = cells.sum(axis=1, keepdims=True)
    return total
