"""The counters of a running lab by place, under their public names.

leaf1:h1                             a port of a switch
  tx_prio3_packets          1,234
h1                                   a host's NIC
  np_cnp_sent                  12
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from emu.errors import UsageError
from emu.fabric_kind import Framing
from emu.measure.counter_notes import note_of
from emu.measure.counter_table import PORT
from emu.measure.counters import PORT_COUNTERS
from emu.measure.lab_snapshot import LabSnapshot
from emu.measure.records import Counters
from emu.spec.diagnostic import did_you_mean
from topologies.graph import Topology

Places = dict[str, Counters]
"""Port or host -> its counters."""


@dataclass(frozen=True)
class Chosen:
    """The places and counters to show."""

    places: tuple[str, ...]
    """Names of ports, switches and hosts; empty for all of them."""
    zeros: bool = False
    """Whether to show counters that are 0, too."""


def counters_of(
    snapshot: LabSnapshot, topology: Topology, framing: Framing, chosen: Chosen
) -> Places:
    """The counters of the chosen places, in the fabric's order. Raises UsageError for an unknown
    place."""
    named = PORT_COUNTERS[framing]
    wanted = _wanted(topology, chosen.places)
    ports = {name: raw for name, raw in snapshot.ports.items() if name in wanted}
    return named(ports) | {
        name: dict(snapshot.hosts.get(name, {})) for name in topology.host if name in wanted
    }


def changes(before: LabSnapshot, earlier: Places, after: LabSnapshot, later: Places) -> Places:
    """What was counted between two snapshots; levels keep their latest value. The counters of NICs
    restart at 0 with each traffic run."""
    levels = PORT.public_levels
    anew = before.traffic.number != after.traffic.number
    return {
        place: {
            name: count
            if name in levels
            else count - (0 if anew and place in after.hosts else _count(earlier, place, name))
            for name, count in own.items()
        }
        for place, own in later.items()
    }


def shown(places: Places, chosen: Chosen) -> Places:
    """The counters without those that are 0, unless `chosen.zeros` is set."""
    if chosen.zeros:
        return places
    return {place: {name: n for name, n in own.items() if n} for place, own in places.items()}


def lines_of(places: Places, framing: Framing, *, explained: bool) -> Iterator[str]:
    """Lines of text, a block for each place. `explained` adds the meaning of each counter."""
    rows = [(name, f"{n:,}") for own in places.values() for name, n in own.items()]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    for place, own in places.items():
        yield place
        for name, n in own.items():
            line = f"  {name:<{widths[0]}}  {n:>{widths[1]},}"
            yield f"{line}  {_meaning(name, place, framing)}" if explained else line
        if not own:
            yield "  all counters are 0"


def _meaning(name: str, place: str, framing: Framing) -> str:
    ports = ("port", framing.value)
    note = note_of(name, ports if ":" in place else ("nic",))
    return note.meaning_of(name) if note else ""


def _count(places: Mapping[str, Counters], place: str, name: str) -> int:
    return places.get(place, {}).get(name, 0)


def _wanted(topology: Topology, names: Sequence[str]) -> set[str]:
    """The ports and hosts with these names. The name of a switch stands for all its ports."""
    ports = {
        switch.name: [topology.port_name[port] for port in topology.ports[switch.name]]
        for switch in topology.switches
    }
    all_ports = [port for own in ports.values() for port in own]
    known = [*all_ports, *ports, *topology.host]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"; an example of a port is {all_ports[0]}"
            raise UsageError(f"there is no port, switch or host {name!r}{hint}")
    if not names:
        return {*all_ports, *topology.host}
    return {place for name in names for place in ports.get(name, [name])}
