"""Measures who can reach whom on the management network, and across."""

from __future__ import annotations

from emu.daemon.messages import MeasureReachability, Reachability, ReachabilityCell
from emu.daemon.served_lab import Answer, ServedLab
from emu.errors import UsageError
from emu.lab.reachability.inventory import joints
from emu.lab.reachability.measure import measure
from emu.lab.reachability.places import expected_cells, places_of


def answer(lab: ServedLab, query: MeasureReachability) -> Answer:
    session = lab.session
    network = session.plan.out_of_band
    if network is None:
        raise UsageError(
            f"the lab {session.spec.name} has no management network: bring it up with "
            "management: on in its spec"
        )
    places = places_of(network, session.lab.pids, ip=session.has_ip)
    cells = expected_cells(network, places, fabric=query.fabric)
    reached, unknown = measure(places, cells, query.seconds)
    kinds = {place.name: place.kind for place in places}
    found = tuple(
        ReachabilityCell(
            *cell,
            source_kind=kinds[cell.source],
            target_kind=kinds[cell.target],
            expected=expected,
            reached=None if cell in unknown else cell in reached,
        )
        for cell, expected in cells.items()
    )
    return Reachability(found, tuple(joints(places))), []
