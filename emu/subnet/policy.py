"""The configuration of a subnet manager, as OpenSM's files.

opensm.conf        engine, LMC, lanes, lifetimes
partitions.conf    Default=0x7fff: ALL=full;
                   storage=0x0001: 0x0000000000200003=full, 0x0000000000200005=limited;
roots.guids        the switches that count as roots, one GUID a line
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from topologies.graph import Topology
from topologies.guids import host_port_guid, switch_guid

CONF, PARTITIONS, ROOTS = "opensm.conf", "partitions.conf", "roots.guids"
_OPERATIONAL_VLS = (1, 2, 4, 8, 15)
"""The numbers of operational VLs in OpenSM's max_op_vls, which counts from 1."""


@dataclass(frozen=True)
class Membership:
    """A partition: its key without the membership bit, and its members with their kind."""

    pkey: int
    full: tuple[str, ...] = ()
    limited: tuple[str, ...] = ()


@dataclass(frozen=True)
class Policy:
    """OpenSM's options, under its own names where it has them."""

    engine: str = "updn"
    roots: tuple[str, ...] = ()
    lmc: int = 0
    vls: int = 1
    """Data lanes of the link that has most of them."""
    sl2vl: tuple[int, ...] = (*range(15), 7)
    vlarb_high: Mapping[int, int] = field(default_factory=lambda: {0: 4})
    vlarb_low: Mapping[int, int] = field(default_factory=dict)
    high_limit: int = 0
    head_of_queue_lifetime: int = 18
    leaf_head_of_queue_lifetime: int = 16
    vl_stall_count: int = 7
    part_enforce: str = "off"
    partitions: Mapping[str, Membership] = field(default_factory=dict)

    def write(self, topology: Topology, folder: Path) -> None:
        """Writes the files into `folder`, where OpenSM is to run."""
        lines = (f"{key} {value}\n" for key, value in self._options())
        (folder / CONF).write_text("".join(lines))
        (folder / PARTITIONS).write_text("".join(self._partition_lines(topology)))
        guids = (f"{switch_guid(topology.switch[name]):#018x}\n" for name in self.roots)
        (folder / ROOTS).write_text("".join(guids))

    def _options(self) -> Iterator[tuple[str, object]]:
        yield "force_log_flush", "TRUE"  # we read it while it is written
        yield "routing_engine", self.engine
        yield "lmc", self.lmc
        yield "partition_config_file", PARTITIONS
        yield "part_enforce", self.part_enforce
        yield "honor_guid2lid_file", "TRUE"
        if self.roots:
            yield "root_guid_file", ROOTS
        yield "qos", "TRUE"
        yield "max_op_vls", _OPERATIONAL_VLS.index(self.vls) + 1
        yield "nue_max_num_vls", self.vls
        yield "qos_max_vls", self.vls
        yield "qos_high_limit", self.high_limit
        yield "qos_vlarb_high", _weights(self.vlarb_high)
        yield "qos_vlarb_low", _weights(self.vlarb_low)
        yield "qos_sl2vl", ",".join(map(str, self.sl2vl))
        yield "head_of_queue_lifetime", self.head_of_queue_lifetime
        yield "leaf_head_of_queue_lifetime", self.leaf_head_of_queue_lifetime
        yield "vl_stall_count", self.vl_stall_count
        yield "leaf_vl_stall_count", self.vl_stall_count
        # A standby looks after the master often, and takes over soon.
        yield "sminfo_polling_timeout", 200
        yield "polling_retry_number", 2

    def _partition_lines(self, topology: Topology) -> Iterator[str]:
        yield "Default=0x7fff: ALL=full;\n"
        for name, partition in self.partitions.items():
            members = [
                f"{host_port_guid(topology.host[host]):#018x}={kind}"
                for kind, hosts in (("full", partition.full), ("limited", partition.limited))
                for host in hosts
            ]
            yield f"{name}={partition.pkey:#06x}: {', '.join(members)};\n"


def _weights(weights: Mapping[int, int]) -> str:
    return ",".join(f"{vl}:{weight}" for vl, weight in weights.items()) or "0:0"
