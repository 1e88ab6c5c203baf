"""The counters of NICs that serve programs, for snapshots of a lab."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from emu._core import ffi, lib
from emu.rdma.context import Context
from traffic.graph import Flow


class ProgramNics:
    """A row for each host. Programs have no flows of a spec."""

    flows: tuple[Flow, ...] = ()

    def __init__(self, contexts: Collection[Context]) -> None:
        self._contexts = contexts

    def post_counters(self, cells: Any) -> None:
        for row, context in zip(cells, self._contexts, strict=True):
            lib.nic_counter_cells(context.core, ffi.from_buffer("int64_t[]", row))

    def post_flows(self, cells: Any) -> None:
        """Does nothing, as there are no flows."""
