"""The NICs of hosts, in this process or in another one that runs a share of the same fabric.

Every process gives NICs, memory regions and queue pairs the same numbers, in the same order. Of a
NIC that another process runs, it has only what its own queue pairs must know.
"""

from __future__ import annotations

from typing import Any

from emu._core import ffi, lib
from emu.errors import FabricError


class OwnNic:
    """A NIC in this process."""

    def __init__(self, core: Any) -> None:
        """`core`: a `struct nic *`."""
        self.core = core

    def add_region(self, va: int, length: int, access: int, contents: Any) -> int:
        """Registers memory, a C pointer or NULL. Returns its key."""
        key = lib.nic_add_region(self.core, 0, va, length, access, contents)
        return int(have(key, "a memory region"))


class FarNic:
    """A NIC that another process runs."""

    def __init__(self, fabric: Any, address: int, guid: int) -> None:
        """`fabric`: a `struct fabric *`; `address`: an IPv4 address, or a LID."""
        self._fabric = fabric
        self._address = address
        self._guid = guid
        self._regions = self._qps = 0

    def add_region(self, va: int, length: int, access: int, contents: Any) -> int:
        """The key that the region has there."""
        self._regions += 1
        return int(lib.fabric_far_key(self._fabric, self._regions))

    def add_qp(self, psn: int) -> Any:
        """A `struct qp_remote *`: the next queue pair there."""
        number = lib.FIRST_QPN + self._qps
        self._qps += 1
        return ffi.new("struct qp_remote *", (number, psn, self._address, self._guid))


def connect_far(own: Any, config: Any, remote: Any) -> Any:
    """Connects a queue pair with one of another process; returns what stands in for that."""
    return have(lib.qp_connect_far(own, config, remote), "a queue pair")


def have(made: Any, what: str) -> Any:
    """Returns `made`. Raises FabricError if the core could not make it."""
    if not made:
        raise FabricError(f"the NICs could not make room for {what}; make the workload smaller")
    return made
