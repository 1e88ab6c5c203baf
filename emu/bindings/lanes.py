"""The virtual lanes of InfiniBand ports in the C core, with the settings of switches and subnet
manager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emu._core import lib
from emu.errors import FabricError
from emu.spec.lanes import credits_of, lanes_of_link
from emu.spec.scenario import Spec
from emu.spec.subnet import MANAGEMENT_VL, SubnetSpec
from emu.spec.switch import CREDIT_BLOCK
from topologies.graph import Port, Topology

HOQ_UNIT_PS = 4_096_000
"""HOQLife is this times a power of two."""
THRESHOLDS = 16
"""The number of steps of the congestion threshold between an empty and a full buffer."""
HOQ_LONGEST = 19
"""A larger power means no limit."""


def set_up_lanes(core: Any, index: int, spec: Spec, topology: Topology, port: Port) -> None:
    """Sets buffers, SL2VL and VL arbitration of the port with this index. Raises FabricError."""
    vls, credits = lanes_of_link(spec, topology, port), credits_of(spec, topology, port)
    width = topology.cable[port].width
    lib.fabric_set_lanes(core, index, width, vls, credits.buffer_bytes)
    for vl, size in credits.lanes.items():
        if vl < vls:
            lib.fabric_set_lane_buffer(core, index, vl, size)
    lib.fabric_set_sl2vl(core, index, spec.subnet.vl_of_sl(vls))
    if vls > 1:
        _set_up_arbitration(core, index, spec.subnet)


def _set_up_arbitration(core: Any, index: int, subnet: SubnetSpec) -> None:
    tables = subnet.vl_arbitration
    high, low = _entries(tables.high), _entries(tables.low)
    done = lib.fabric_set_vlarb(core, index, high, len(high), low, len(low), tables.high_limit)
    if not done:
        raise FabricError("the fabric does not fit into this machine's memory; make it smaller")


def _entries(weights: Mapping[int, int]) -> list[tuple[int, int]]:
    """Pairs of VL and weight, in the order of the spec."""
    return list(weights.items())


def set_up_lifetimes(core: Any, number: int, subnet: SubnetSpec, *, to_host: bool) -> None:
    """Sets how long packets wait for credit at the switch port of this number."""
    power = subnet.leaf_head_of_queue_lifetime if to_host else subnet.head_of_queue_lifetime
    life_ps = 0 if power > HOQ_LONGEST else HOQ_UNIT_PS << power
    lib.switch_set_hoq(core, number, life_ps, subnet.vl_stall_count)


def set_up_marks(core: Any, spec: Spec, port: Port, *, to_host: bool) -> None:
    """Sets when a switch port marks packets with FECN."""
    switch = spec.switch(port.node)
    if switch.fecn is None:
        return
    fecn = switch.fecn
    thresholds = [
        switch.credits.buffer_of(vl) * (THRESHOLDS - fecn.threshold) // THRESHOLDS
        for vl in range(MANAGEMENT_VL + 1)
    ]
    victim = fecn.victim_mask == "all" or (fecn.victim_mask == "hosts" and to_host)
    size = fecn.packet_size * CREDIT_BLOCK
    lib.switch_set_fecn(core, port.number, thresholds, fecn.marking_rate, size, victim)


def set_up_pkeys(core: Any, subnet: SubnetSpec, port: Port, host: str | None) -> None:
    """Sets which partitions a switch port lets through: all of them unless it leads to a host."""
    enforce = subnet.part_enforce
    if host is not None and enforce != "off":
        keys = subnet.keys_of(host)
        inbound, outbound = enforce in ("in", "both"), enforce in ("out", "both")
        lib.switch_set_pkeys(core, port.number, inbound, outbound, keys, len(keys))
