"""The virtual lanes and their buffers on the links of a spec's topology.

Both ends of a link operate the lanes of the end with fewer. A host's port has the settings of its
switch.
"""

from __future__ import annotations

from emu.spec.scenario import Spec
from emu.spec.switch import Credits
from topologies.graph import Port, Topology


def lanes_of_link(spec: Spec, topology: Topology, port: Port) -> int:
    """The number of data lanes in operation on the link of a port."""
    ends = (port, topology.peer[port])
    return min(spec.switch(end.node).credits.vls for end in ends if end.node in topology.switch)


def credits_of(spec: Spec, topology: Topology, port: Port) -> Credits:
    """A port's settings of credits; a host's port has those of its switch."""
    node = port.node if port.node in topology.switch else topology.peer[port].node
    return spec.switch(node).credits


def lane_buffers(spec: Spec, topology: Topology) -> int:
    """The sum of the buffers of all lanes at all switch ports, in bytes."""
    return sum(
        len(topology.ports[switch.name]) * sum(map(credits.buffer_of, range(credits.vls)))
        for switch in topology.switches
        for credits in (spec.switch(switch.name).credits,)
    )
