"""Measures who can reach whom on the management network, and across."""

from __future__ import annotations

from emu.daemon.messages import MeasureReachability, Reachability
from emu.daemon.served_lab import Answer, ServedLab
from emu.errors import UsageError
from emu.lab.out_of_band.network import Network
from emu.measure.reachability import MeasuredCell

_MOST_NODES = 40
"""The number of probes grows with its square."""


def answer(lab: ServedLab, query: MeasureReachability) -> Answer:
    # These import pyroute2, which a lab otherwise loads while its other processes start.
    from emu.lab.reachability.inventory import joints
    from emu.lab.reachability.measure import measure
    from emu.lab.reachability.places import expected_cells, places_of

    session = lab.session
    network = session.plan.out_of_band
    if network is None:
        raise UsageError(
            f"the lab {session.spec.name} has no management network: bring it up with "
            "management: on in its spec"
        )
    nodes = query.nodes or network.nodes
    for node in query.nodes:
        lab.check_node(node)
    if len(nodes) > _MOST_NODES:
        raise UsageError(
            f"{len(nodes)} hosts and switches are too many to probe each from each; name up to "
            f"{_MOST_NODES} with --nodes, for example --nodes {','.join(_some(network))}"
        )
    places = places_of(network, session.lab.pids, ip=session.has_ip)
    probed = [place for place in places if place.of_node in ("", *nodes)]
    cells = expected_cells(network, probed, fabric=query.fabric)
    reached, unknown = measure(probed, cells, query.seconds)
    kinds = {place.name: place.kind for place in places}
    found = tuple(
        MeasuredCell(
            *cell,
            source_kind=kinds[cell.source],
            target_kind=kinds[cell.target],
            expected=expected,
            reached=None if cell in unknown else cell in reached,
        )
        for cell, expected in cells.items()
    )
    return Reachability(found, tuple(joints(places))), []


def _some(network: Network) -> tuple[str, ...]:
    """Two hosts and two switches."""
    return (*network.nodes[:2], *network.nodes[-2:])
