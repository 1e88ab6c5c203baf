"""Takes cables down and up again for `link NODE NODE down|up` at Mininet's prompt.

A cable goes down by a fault in the shim, named after the cable: frames on it are lost and routes
avoid it, as with `emu fault set "link-down: ..."`.
"""

from __future__ import annotations

from collections.abc import Callable

from emu.lab.ipc.codec import Query
from emu.lab.ipc.queries import ClearFault, FaultList, ListFaults, SetFault
from emu.lab.net import OnCables
from topologies.graph import Port, Topology


def cables_by_faults(topology: Topology, ask: Callable[[Query[FaultList]], FaultList]) -> OnCables:
    """The function that sets the cables between two nodes up or down.

    `ask` sends a query to the shim, or to the lab, and returns the answer."""

    def set_cables(one: str, other: str, up: bool) -> bool:
        between = [
            cable.a for cable in topology.cables if {cable.a.node, cable.b.node} == {one, other}
        ]
        for port in between:
            set_cable(port, up)
        return bool(between)

    def set_cable(port: Port, up: bool) -> None:
        cable = topology.port_name[port]
        name = f"link-{cable.replace(':', '-')}"
        is_down = name in [fault.name for fault in ask(ListFaults()).faults]
        if up and is_down:
            ask(ClearFault(name))
        elif not up and not is_down:
            ask(SetFault(name, {"name": name, "link-down": {"cable": cable}}))

    return set_cables
