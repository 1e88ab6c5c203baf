"""Shared receive queues."""

from __future__ import annotations

from emu._core import lib
from emu.bindings.nics import have
from emu.rdma.errors import refuse_receive
from emu.rdma.limits import refuse_numbers
from emu.rdma.memory import PD
from emu.rdma.work import RecvWR, elements


class SRQ:
    """A queue of receives. Each goes to the next of its queue pairs that needs one."""

    def __init__(self, pd: PD, max_wr: int) -> None:
        refuse_numbers(pd.context.name, {"max_wr": max_wr})
        self.pd = pd
        self.max_wr = max_wr
        made = have(lib.verbs_srq_new(pd.context.core, pd.handle, max_wr), "a receive queue")
        self.core = pd.context.keep(made, lib.verbs_srq_free)

    def destroy(self) -> None:
        """Frees the queue. No queue pair may use it any more."""
        with self.pd.context.clock.frozen():
            self.pd.context.free(self.core)

    def post_recv(self, wr: RecvWR) -> None:
        """Raises LocalProtocolError, and has posted nothing, when that is not allowed."""
        clock, sge = self.pd.context.clock, wr.sge
        subject = f"{self.pd.context.name}'s shared queue"
        refuse_numbers(subject, wr.numbers())
        with clock.frozen():
            refused = lib.verbs_post_srq_recv(self.core, wr.wr_id, elements(sge), 1, clock.now_ps)
        refuse_receive(refused, subject, self.max_wr, wr)
