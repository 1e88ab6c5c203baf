"""NICs in the test's process, in a lab on the exact clock: the test is the program that posts their
work, and for which nothing may be left to happen."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path

import numpy as np

from emu.bindings.exact_driver import ExactDriver, Outcome, Wakes
from emu.bindings.fabric import Fabric, NodeSubset
from emu.daemon.client import LabClient
from emu.daemon.messages import JoinLab
from emu.lab.exact_clock import STEP_PS, attach_nic
from emu.rdma import AccessFlag, QPType, SendWR, WROpcode
from emu.rdma.clock import Clock
from emu.rdma.completion import CQ
from emu.rdma.context import Context
from emu.rdma.exact_clock import exact_lab
from emu.rdma.qp import QP
from emu.spec.scenario import Spec
from tests.support.traces import command_of, descendants
from tests.support.user import SECONDS


class _StandingClock(Clock):
    """Time passes only in `ProgramNics.run`."""

    def frozen(self) -> nullcontext[None]:
        return nullcontext()

    def close(self) -> None:
        pass

    def _go_on(self) -> None:
        raise AssertionError("nothing may await this clock")


class ProgramNics:
    """The NICs of a lab, which have joined it without end."""

    def __init__(
        self, lab: str, driver: ExactDriver, clock: Clock, host: dict[str, Context]
    ) -> None:
        self.lab = lab
        self.driver = driver
        self.host = host
        self._clock = clock

    @property
    def now_ps(self) -> int:
        return self._clock.now_ps

    def run(self) -> list[int]:
        """Runs until nothing is left to happen. Returns the times at which something completed."""
        completed: list[int] = []
        self.driver.stop_at_event(self._clock.event, None)
        while True:
            self._clock.event[0] = False
            outcome = self.driver.run(seconds=0.1)
            if outcome is Outcome.IDLE:
                return completed
            assert outcome in (Outcome.EVENT, Outcome.PAUSED), outcome
            if outcome is Outcome.EVENT:
                completed.append(self.now_ps)

    def sleep(self, for_ps: int) -> None:
        """Lets so much time pass, in which nothing completes."""
        until_ps = self.now_ps + for_ps
        self.driver.stop_at_event(self._clock.event, until_ps)
        while self.now_ps < until_ps:
            self._clock.event[0] = False
            assert self.driver.run(seconds=0.1) in (Outcome.EVENT, Outcome.PAUSED)

    def serve(self, process: subprocess.Popen[str]) -> str:
        """Lets frames of a process pass, until it has ended. Returns what it printed."""
        end = time.monotonic() + SECONDS
        ended = os.pidfd_open(process.pid)
        try:
            while time.monotonic() < end:
                ready, _, _ = select.select([self.driver.nudge, ended], [], [], SECONDS)
                if ready == [ended]:
                    said = process.communicate()[0]
                    assert process.returncode == 0, said
                    return said
                self.run()
        finally:
            os.close(ended)
        raise AssertionError("the process has not ended")

    def start(self, node: str, *command: str) -> subprocess.Popen[str]:
        """Starts a program on a host. Its input is a pipe, and so is what it prints."""
        emu = (sys.executable, "-m", "emu.cli.main", "exec", "--lab", self.lab)
        return subprocess.Popen(
            [*emu, node, "--", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def writer(self, source: str, sink: str, size: int) -> Writer:
        return Writer(self.host[source], self.host[sink], size)


class Writer:
    """A connection by which one host writes to another."""

    def __init__(self, source: Context, sink: Context, size: int) -> None:
        domain, theirs = source.alloc_pd(), sink.alloc_pd()
        remote = AccessFlag.LOCAL_WRITE | AccessFlag.REMOTE_WRITE
        own = domain.reg_mr(np.zeros(size, np.uint8), AccessFlag.LOCAL_WRITE)
        there = theirs.reg_mr(np.zeros(size, np.uint8), remote)
        self.cq: CQ = source.create_cq(16)
        self.qp: QP = domain.create_qp(QPType.RC, self.cq)
        far = theirs.create_qp(QPType.RC, sink.create_cq(16))
        self.qp.connect(far.end)
        far.connect(self.qp.end)
        self._request = SendWR(
            WROpcode.RDMA_WRITE, own.sge(), remote_addr=there.addr, rkey=there.rkey
        )

    def post(self) -> None:
        self.qp.post_send(self._request)

    def completion_ns(self) -> float:
        """When the oldest message was completed. Fails if it was not, or did not succeed."""
        (completion,) = self.cq.poll()
        return completion.succeeded().at_ns


@contextmanager
def program_nics(spec: Spec) -> Iterator[ProgramNics]:
    """A lab of this spec whose NICs are those of this process."""
    with ExitStack() as stack:
        named, lab, sockets = stack.enter_context(exact_lab(spec))
        topology = named.topology.build()
        fabric = stack.enter_context(
            Fabric(named, topology, NodeSubset.HOSTS, subnet=sockets.subnet, exact=True)
        )
        clock = _StandingClock(fabric)
        hosts = {
            host.name: Context(clock, host, sockets.subnet, levels=sockets.levels)
            for host in topology.hosts
        }
        for host in hosts.values():
            stack.callback(host.close)
        fabric.connect()
        driver = stack.enter_context(ExactDriver(fabric, step_ps=STEP_PS, wake=lab.ended))
        for name, (opened, ifindex) in sockets.hosts.items():
            attach_nic(driver, topology, name, opened, ifindex)
        with LabClient(named.name) as client:
            _, (memory, *eventfds) = client.ask(JoinLab())
        with closing(Wakes(*eventfds)) as wakes:
            driver.join(memory, wakes, endless=True)
            os.close(memory)
        fabric.start()
        yield ProgramNics(named.name, driver, clock, hosts)


def shim_of_this_process() -> int:
    (shim,) = (pid for pid in descendants(os.getpid()) if "emu-shim" in command_of(pid))
    return shim


def processor_ns(pid: int) -> int:
    """How long all threads of a process have run so far."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)
