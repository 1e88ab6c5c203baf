"""Completion queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu._core import ffi, lib
from emu.bindings.nics import have
from emu.errors import LocalProtocolError
from emu.rdma.limits import refuse_numbers
from emu.rdma.work import WC, completion

if TYPE_CHECKING:
    from emu.rdma.context import Context


class CQ:
    """A completion queue, which holds completions in the order in which they occurred."""

    def __init__(self, context: Context, cqe: int) -> None:
        """`cqe` is the most completions that it can hold."""
        refuse_numbers(context.name, {"cqe": cqe})
        self.context = context
        self.cqe = cqe
        made = have(lib.cq_new(context.clock.core, cqe, context.clock.event), "a completion queue")
        self.core = context.keep(made, lib.cq_free)

    def destroy(self) -> None:
        """Frees the queue. No queue pair may use it any more."""
        with self.context.clock.frozen():
            self.context.free(self.core)

    def poll(self, num_entries: int = 1) -> list[WC]:
        """Up to `num_entries` completions, oldest first. No time passes.

        Raises LocalProtocolError when a completion was lost because the queue was full.
        """
        with self.context.clock.frozen():
            return self._poll(num_entries)

    async def wait(self, timeout_ns: float | None = None) -> WC:
        """The next completion. Time passes until there is one.

        Raises TimeoutError when there is none within `timeout_ns` of emulated time (by default
        the spec's `time_limit`), and LocalProtocolError as `poll` does.
        """
        clock = self.context.clock
        limit_ns = self.context.patience_ns if timeout_ns is None else timeout_ns
        found = await clock.until(lambda: next(iter(self._poll(1)), None), clock.now_ns + limit_ns)
        if found is None:
            raise TimeoutError(
                f"{self.context.name}: nothing completed within {limit_ns:g} ns of emulated time"
            )
        return found

    def _poll(self, num_entries: int) -> list[WC]:
        seen = ffi.new("struct work_completion *")
        found: list[WC] = []
        while len(found) < num_entries and lib.cq_poll(self.core, seen):
            found.append(completion(seen))
        if not found and lib.cq_is_overrun(self.core):
            raise LocalProtocolError(
                f"{self.context.name}: a completion queue of {self.cqe} was full, and completions "
                "are lost; poll sooner, or make it larger"
            )
        return found
