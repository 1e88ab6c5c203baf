"""Virtual lanes and their buffers, as a spec has them for the links of a topology.

Both ends of a link run as many lanes as the one with fewer can. A host's port is
what its switch is.
"""

from __future__ import annotations

from emu.spec.scenario import Spec
from emu.spec.switch import Credits
from topologies.graph import Port, Topology


def lanes_of_link(spec: Spec, topology: Topology, port: Port) -> int:
    """Data lanes in operation on the link of a port."""
    ends = (port, topology.peer[port])
    return min(spec.switch(end.node).credits.vls for end in ends if end.node in topology.switch)


def credits_of(spec: Spec, topology: Topology, port: Port) -> Credits:
    """A port's buffers; a host's are those of the switch it is on."""
    node = port.node if port.node in topology.switch else topology.peer[port].node
    return spec.switch(node).credits


def lane_buffers(spec: Spec, topology: Topology) -> int:
    """Bytes of all lanes at all switch ports."""
    return sum(
        len(topology.ports[switch.name]) * sum(map(credits.buffer_of, range(credits.vls)))
        for switch in topology.switches
        for credits in (spec.switch(switch.name).credits,)
    )
