"""The events in a lab from now on, from one snapshot to the next."""

from __future__ import annotations

import time
from collections.abc import Iterator

from emu.daemon.client_snapshot import take_snapshot
from emu.daemon.session import Asks
from emu.measure.lab_snapshot import LabSnapshot
from emu.measure.snapshot_diff import Event, Pauses, events_between, in_order
from topologies.graph import Topology

_SECONDS_BETWEEN_SNAPSHOTS = 0.2


def events_after(before: LabSnapshot, lab: Asks, topology: Topology) -> Iterator[list[Event]]:
    """The events after a snapshot, five times a second, until the lab ends (FabricError)."""
    peers = {topology.port_name[port]: peer.node for port, peer in topology.peer.items()}
    pauses = Pauses(peers, topology.host)
    while True:
        time.sleep(_SECONDS_BETWEEN_SNAPSHOTS)
        now = take_snapshot(lab)
        yield in_order((*events_between(before, now), *pauses.events(before, now)))
        before = now
