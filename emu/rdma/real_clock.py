"""The real clock: a lab in namespaces whose NICs run in the program that uses them.

    program ── post, poll ──▶ NICs ══ sockets on the hosts' interfaces ══ shim, in the lab
        a thread of their own: like real NICs, they work while the program does not

Calls from Python stop that thread for a moment, between two packets. Callers go first: the
thread waits at a gate while a call is in progress.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from emu.bindings.af_packet_driver import AfPacketDriver, Outcome
from emu.bindings.fabric import Fabric
from emu.daemon.client import LabClient
from emu.lab.ipc.jobs import ServeLab
from emu.lab.rt_sched import processors_awake, wake_in_time
from emu.rdma.clock import Clock
from emu.rdma.own_lab import HostSockets, borrow_nics, own_lab
from emu.runtime.real import slowdown_for
from emu.spec.scenario import Spec

T = TypeVar("T")

_SECONDS_A_TURN = 0.1
_SECONDS_BETWEEN_POLLS = 1e-3
_UPDATE_INTERVAL_BITS = 65_536 * 8
"""The longest interval between the credit updates of a VL, in bit times of one lane of a link (IBTA
vol 1, 7.9.4)."""


@contextmanager
def lab_in_namespaces(spec: Spec) -> Iterator[tuple[Spec, float, HostSockets]]:
    """A lab that ends with the body: its spec with the lab's name, its slowdown, and its sockets.

    Raises UsageError, HostError, FabricError.
    """
    slowdown, _ = slowdown_for(spec)
    named = spec.model_copy(update={"name": f"{spec.name}-{os.getpid()}"})
    job = ServeLab(named.to_json(), slowdown, ip=False)  # the NICs are in this process
    with own_lab(job), LabClient(named.name) as lab:
        yield named, slowdown, borrow_nics(lab, named.topology.build())


class RealClock(Clock):
    """Time passes by itself, `slowdown` times slower than real time."""

    def __init__(self, fabric: Fabric, slowdown: float, sockets: HostSockets) -> None:
        super().__init__(fabric)
        self._slowdown = slowdown
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gate, self._inside = threading.RLock(), threading.RLock()
        self._wakeup_fd = os.eventfd(0, os.EFD_NONBLOCK)
        self._driver = AfPacketDriver(fabric, slowdown=slowdown, wake=self._wakeup_fd)
        self._driver.finish_on(self.event)
        self._sockets = sockets
        self._thread = threading.Thread(target=self._work, name="NICs", daemon=True)

    def start(self) -> None:
        """Brings the links up and starts the NICs. The cables must be connected."""
        topology = self.fabric.topology
        for host, (opened, ifindex) in self._sockets.hosts.items():
            wire = self._driver.add_socket(opened)
            self._driver.attach_end(wire, ifindex, topology.peer[topology.ports[host][0]])
        self.fabric.prefault()
        self.fabric.start()
        self._thread.start()
        if self.fabric.spec.fabric_kind.uses_credits:
            self._wait_for_credit()

    def _wait_for_credit(self) -> None:
        """Waits until every link has credit, as programs wait for their port to be active.

        A NIC that starts later gets credit with the switch's next update. A cut link never
        gets any, so the wait ends after the longest interval between updates.
        """
        ports = [self.fabric.topology.ports[host][0] for host in self._sockets.hosts]
        cables = [self.fabric.topology.cable[port] for port in ports]
        slowest_bps = min(cable.rate_bps / cable.width for cable in cables)
        deadline_ns = self.now_ns + _UPDATE_INTERVAL_BITS * 1e9 / slowest_bps
        while self.now_ns < deadline_ns:
            with self.frozen():
                if all(self.fabric.view(port).credit_bytes[0] for port in ports):
                    return
            time.sleep(_SECONDS_BETWEEN_POLLS)

    def close(self) -> None:
        self._ended = True
        with self.frozen():
            pass
        self._thread.join()
        self._driver.__exit__(None, None, None)
        os.close(self._wakeup_fd)

    @property
    def now_ns(self) -> int:
        """The present emulated time. The NICs' thread must stop for it, because idle NICs do not
        read the clock."""
        with self.frozen():
            return super().now_ns

    @contextmanager
    def frozen(self) -> Iterator[None]:
        with self._gate:
            os.eventfd_write(self._wakeup_fd, 1)
            with self._inside:
                yield

    def _work(self) -> None:
        wake_in_time()
        start_ns = time.monotonic_ns()
        with processors_awake():
            while not self._ended:
                with self._gate:
                    pass
                self._turn(start_ns)

    def _turn(self, start_ns: int) -> None:
        """Runs the NICs for a while, and wakes waiting tasks after completions."""
        with self._inside:
            outcome = self._driver.run(start_ns, seconds=_SECONDS_A_TURN)
            completed, self.event[0] = self.event[0], False
        if outcome is Outcome.WOKEN:
            os.eventfd_read(self._wakeup_fd)
        loop = self._loop
        if completed and loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._wake)

    async def until(self, poll: Callable[[], T | None], deadline_ns: float) -> T | None:
        """As in Clock. The NICs' thread must know the event loop before `poll` runs, or a
        completion between the two would wake no task."""
        self._loop = asyncio.get_running_loop()
        return await super().until(poll, deadline_ns)

    def _go_on(self) -> None:
        """Starts the timer of the newest waiting task. The NICs' thread reports completions."""
        loop = asyncio.get_running_loop()
        deadline_ns, future = self._waiting[-1]
        seconds = max(0.0, deadline_ns - self.now_ns) * self._slowdown / 1e9
        loop.call_later(seconds, _give_up, future)


def _give_up(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
