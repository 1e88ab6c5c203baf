"""The maps of the eBPF marker, which the core reads and writes as memory."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Any

from emu._core import ffi, lib
from topologies.graph import Topology

_DEPTHS = 8
"""Of the queues of a port."""


@dataclass(frozen=True)
class MarkerMaps:
    """Two maps with a row for each port of the switches, which come first in a fabric."""

    depths: mmap.mmap
    """uint32 depths of the queues of a port, in bytes."""
    curves: mmap.mmap
    """A `struct wred_curves` of each port."""

    @classmethod
    def of(cls, topology: Topology, depths: int, curves: int) -> MarkerMaps:
        """Maps them, from their descriptors."""
        ports = sum(len(topology.ports[switch.name]) for switch in topology.switches)
        return cls(
            _mapped(depths, ports * _DEPTHS * 4),
            _mapped(curves, ports * lib.driver_curves_bytes()),
        )

    @property
    def pointers(self) -> tuple[Any, Any]:
        """C pointers to both. The maps must be kept as long as the core uses these."""
        return ffi.from_buffer("uint32_t[]", self.depths), ffi.from_buffer(self.curves)


def _mapped(opened: int, size: int) -> mmap.mmap:
    return mmap.mmap(opened, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
