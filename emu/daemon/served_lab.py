"""The parts of a background lab that its handlers use."""

from __future__ import annotations

import threading
import time

from emu.daemon.lab_clock import ExactLabClock, LabClock, RealLabClock
from emu.daemon.lab_faults import LabFaults
from emu.daemon.nics import Nics
from emu.daemon.program_nics import ProgramNics
from emu.daemon.rdma_nics import LabCounters, RdmaNics
from emu.daemon.rdma_sysfs import RdmaSysfs
from emu.daemon.traffic import Traffic
from emu.errors import UsageError
from emu.lab.ipc.codec import Message
from emu.lab.ipc.rpc import RpcClient
from emu.lab.session import Session
from emu.lab.supervisor import Supervisor
from emu.lab.version import version
from emu.spec.diagnostic import unknown_name

Answer = tuple[Message, list[int]]
"""A message and open files for the client, which the server closes after it has sent them."""


class ServedLab:
    """The parts of the lab. Several threads may use them at the same time."""

    def __init__(
        self, session: Session, supervisor: Supervisor, slowdown: float, began_ns: int
    ) -> None:
        """`began_ns`: the emulated time 0 of a lab on the real clock, on CLOCK_MONOTONIC."""
        self.over = threading.Event()
        """Set when a client has requested the lab's end."""
        self.session = session
        self.slowdown = slowdown
        self.topology = session.spec.topology.build()
        self.began = time.monotonic()
        self.shim = RpcClient(session.shim, "the shim", session.spec.name)
        self.counters_file, *others = session.shim.take_files()
        """The counters of all switch ports."""
        self.clock: LabClock = RealLabClock(session.spec, self.shim, slowdown, began_ns)
        if session.plan.request.exact:
            self.clock = ExactLabClock(session.spec, self.shim, *others)
        self.nics = Nics(session, supervisor, self.clock)
        self.traffic = Traffic(session, supervisor, self.clock, self.nics)
        self.programs = ProgramNics(
            session, supervisor, self.clock, self.nics, self._why_no_programs
        )
        self.faults = LabFaults(session.spec, self.shim, self.nics, self.clock)
        counters = LabCounters(session, self.nics, self.counters_file)
        self.rdma_sysfs = RdmaSysfs(RdmaNics(session, counters))
        version()  # computed now: the source files may change later

    def _why_no_programs(self) -> str:
        if self.traffic.status.state == "running":
            return "the lab's traffic uses the NICs; run `emu traffic stop` first"
        return ""

    def check_node(self, node: str) -> None:
        """Raises UsageError if there is no such host or switch."""
        known = [*self.topology.host, *self.topology.switch]
        if node not in known:
            raise UsageError(unknown_name("host or switch", node, known))
