"""Where a switch of the core sends packets: its routes, now and after links were lost or came
back, and how it chooses among several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emu._core import lib
from emu.errors import FabricError
from emu.spec.outages import Rerouting, is_hinted
from emu.spec.pinning import pins_of
from emu.spec.routing import PACKET_KINDS
from emu.spec.scenario import Spec
from emu.subnet import Subnet
from topologies.graph import Port, Switch, Topology
from topologies.seeds import ecmp_seed

KINDS = {
    "ecmp": lib.BALANCE_ECMP,
    "ecmp-qp": lib.BALANCE_ECMP_QP,
    "pinned": lib.BALANCE_PINNED,
    "flowlet": lib.BALANCE_FLOWLET,
    "spray": lib.BALANCE_SPRAY,
    "adaptive": lib.BALANCE_ADAPTIVE,
}


def set_choice(core: Any, spec: Spec, switch: Switch, changes: Sequence[Rerouting]) -> None:
    """How the switch, whose routes change like that, chooses among next hops."""
    routing = spec.switch(switch.name).routing
    seed = ecmp_seed(routing.seed_of(spec.seed), switch)
    hints = is_hinted(spec, switch.name, changes)
    _have_memory(
        lib.switch_set_balance(core, KINDS[routing.kind], seed, routing.gap_ps, hints),
    )


def set_ip_routes(
    core: Any, spec: Spec, topology: Topology, switch: Switch, changes: Sequence[Rerouting]
) -> None:
    """An Ethernet switch's routes to every host, and its pinned flows."""
    for host, hops in topology.next_hops[switch.name].items():
        _have_memory(lib.switch_add_route(core, _address(topology, host), *_numbers(hops)))
    for change in changes:
        for host, hops in change.changes.items():
            destination = _address(topology, host)
            _have_memory(
                lib.switch_add_route_later(core, change.at_ps, destination, *_numbers(hops))
            )
    for pin in pins_of(spec, switch.name):
        ends = _address(topology, pin.src), _address(topology, pin.dst)
        _have_memory(lib.switch_pin_flow(core, *ends, pin.udp_source, pin.port.number))


def set_lid_routes(
    core: Any,
    spec: Spec,
    topology: Topology,
    switch: Switch,
    subnet: Subnet,
    changes: Sequence[Rerouting],
) -> None:
    """An InfiniBand switch's LFT, or, for packets that may take any shortest path, all of them."""
    routing = spec.switch(switch.name).routing
    lft = subnet.lfts[switch.name]
    for lid in lft:
        _have_memory(lib.switch_add_route(core, lid, *_port_of(lft, lid)))
    if routing.kind in PACKET_KINDS:
        _set_shortest_paths(core, topology, switch, subnet, changes)
        return
    for at_ps, tables in subnet.later:
        later = tables[switch.name]
        for lid in lft | later:
            if lft.get(lid) != later.get(lid):
                when = at_ps + routing.convergence_ps
                _have_memory(lib.switch_add_route_later(core, when, lid, *_port_of(later, lid)))
        lft = later


def _port_of(lft: dict[int, int], lid: int) -> tuple[list[int], int]:
    """The entry of an LFT as the core takes it; port 0 is the switch itself."""
    numbers = [number] if (number := lft.get(lid, 0)) else []
    return numbers, len(numbers)


def _set_shortest_paths(
    core: Any, topology: Topology, switch: Switch, subnet: Subnet, changes: Sequence[Rerouting]
) -> None:
    for host, hops in topology.next_hops[switch.name].items():
        _have_memory(lib.switch_add_route(core, subnet.lids[host], *_numbers(hops)))
    for change in changes:
        for host, hops in change.changes.items():
            lid = subnet.lids[host]
            _have_memory(lib.switch_add_route_later(core, change.at_ps, lid, *_numbers(hops)))


def _address(topology: Topology, host: str) -> int:
    """The low half of the host's address, by which the core knows it."""
    return int(topology.host[host].ip) & 0xFFFF


def _numbers(hops: tuple[Port, ...]) -> tuple[list[int], int]:
    """Next hops as the core takes them: numbers, and how many."""
    return [port.number for port in hops], len(hops)


def _have_memory(done: bool) -> None:
    if not done:
        raise FabricError("there is no memory for the routes; make the fabric smaller")
