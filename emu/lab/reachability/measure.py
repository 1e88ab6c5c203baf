"""Sends all probes of a matrix and notes which of them arrive."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack

from emu.lab.reachability.places import RAW, Cell, Place
from emu.lab.reachability.receivers import Receiver, unique_mark
from emu.lab.reachability.senders import Sender, sender_of
from emu.resources import allow_files

_CONNECTIONS_AT_A_TIME = 1000
_FILES = 3 * _CONNECTIONS_AT_A_TIME
_SECONDS_BETWEEN_LOOKS = 0.02


def measure(
    places: Sequence[Place], cells: Collection[Cell], seconds: float
) -> tuple[set[Cell], set[Cell]]:
    """The cells in which a probe arrived within `seconds`, and those of which nothing can be said,
    because a program at the target takes the datagrams."""
    allow_files(_FILES)
    wanted = {cell.target: set[str]() for cell in cells}
    for cell in cells:
        wanted[cell.target].add(cell.service)
    with ExitStack() as opened:
        receivers = []
        for place in places:
            if place.name in wanted:
                receivers.append(Receiver(place, sorted(wanted[place.name])))
                opened.callback(receivers[-1].close)
        reached = set[Cell]()
        for batch in _batches(cells):
            reached |= _measure_some(places, receivers, batch, seconds)
        taken = {
            (one.place.name, service)
            for one in receivers
            for service in one.taken
            if service.startswith("udp/")
        }
    return reached, {cell for cell in cells if (cell.target, cell.service) in taken}


def _batches(cells: Collection[Cell]) -> Iterator[set[Cell]]:
    """All cells of a source stay together, as a broadcast reaches all its targets."""
    batch: set[Cell] = set()
    for source in dict.fromkeys(cell.source for cell in cells):
        own = {cell for cell in cells if cell.source == source}
        if batch and len(batch) + len(own) > _CONNECTIONS_AT_A_TIME:
            yield batch
            batch = set()
        batch |= own
    yield batch


def _measure_some(
    places: Sequence[Place], receivers: Sequence[Receiver], cells: Collection[Cell], seconds: float
) -> set[Cell]:
    mark = unique_mark()
    own = [place for place in places if any(cell.source == place.name for cell in cells)]
    with ExitStack() as opened:
        senders = []
        for place in own:
            senders.append(Sender(place, places.index(place), mark))
            opened.callback(senders[-1].close)
        taken = {receiver.place.name: receiver.taken for receiver in receivers}
        for sender in senders:
            _send_all(sender, places, cells, taken)
        found = set[Cell]()
        end = time.monotonic() + seconds
        while time.monotonic() < end:  # that nothing arrives is known only then
            found.update(_arrived(places, senders, receivers, mark))
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    return found & set(cells)


def _send_all(
    sender: Sender,
    places: Sequence[Place],
    cells: Collection[Cell],
    taken: Mapping[str, Collection[str]],
) -> None:
    """Sends the probes of a place. Programs that have `taken` services of a target get nothing to
    read."""
    by_name = {place.name: place for place in places}
    own = [cell for cell in cells if cell.source == sender.place.name]
    if any(cell.service == RAW for cell in own):
        sender.broadcast()
    for cell in own:
        is_taken = cell.service in taken.get(cell.target, ())
        if cell.service != RAW and not (is_taken and cell.service.startswith("udp/")):
            sender.send(by_name[cell.target], cell.service, mute=is_taken)


def _arrived(
    places: Sequence[Place], senders: Sequence[Sender], receivers: Sequence[Receiver], mark: bytes
) -> Iterator[Cell]:
    """What has arrived by now. A connection counts when its target has read the probe; if another
    program listens there, when it was accepted."""
    taken = {receiver.place.name: receiver.taken for receiver in receivers}
    for sender in senders:
        for target, service in sender.connected():
            if service in taken[target]:
                yield Cell(sender.place.name, target, service)
    for receiver in receivers:
        for service, data in receiver.received():
            number = sender_of(data, mark)
            if number is not None:
                yield Cell(places[number].name, receiver.place.name, service)
