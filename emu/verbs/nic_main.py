"""`python -m emu.verbs.nic_main FD`: the NICs of all hosts in a lab, which serve verbs programs.

They work from the first program that opens its device until the lab ends them.

On the exact clock, emulated time passes while all threads of all programs wait:

    answer requests until all wait ─▶ take work ─▶ run to the next event ─▶ give completions ─┐
          ▲                                                                                   │
          └───────────────────────────────────────────────────────────────────────────────────┘
"""

from __future__ import annotations

import os
import select
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from typing import NoReturn

from emu._core import ffi, lib
from emu.bindings.af_packet_driver import AfPacketDriver
from emu.bindings.exact_driver import ExactDriver, Outcome, Wakes
from emu.bindings.fabric import Fabric, NodeSubset
from emu.bindings.ipoib import IpInterfaces
from emu.lab.exact_clock import STEP_PS, attach_nics
from emu.lab.fault_changes import change_faults
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.codec import Message
from emu.lab.ipc.messages import Ready, Start
from emu.lab.ipc.queries import CountPrograms, ProgramCount
from emu.lab.ipc.setup import SetUpNics
from emu.lab.nic_process import spec_of_nics
from emu.lab.nic_tables import NicTables
from emu.lab.rnic_main import attach, plug_in
from emu.lab.rt_sched import be_punctual
from emu.lab.worker import serve
from emu.rdma.clock import Clock
from emu.rdma.context import Context
from emu.spec.fault import Fault
from emu.verbs.counters import ProgramNics
from emu.verbs.peers import by_network
from emu.verbs.running import RunningPrograms
from emu.verbs.server import VerbsServer

_NEVER = 2**63 - 1
_PROGRAMS_TURN = (Outcome.EVENT, Outcome.IDLE, Outcome.STANDS)
_SECONDS_A_TURN = 0.02
_PS_BETWEEN_DELAYED = 1_000_000
_SHORTEST_LIMIT_PS = 10**10
"""10 ms. A program that begins or ends is not answered before the end of a run. So a run is
limited: to this, and in a long rest of all programs to the time that the rest has lasted so far."""
_SECONDS_A_LOOK = 0.001
"""While nothing happens, at programs that compute without a call of verbs."""
_SECONDS_BETWEEN_POSTS = 0.1
"""Of counters, for others to read."""


class _ServedClock(Clock):
    """The fabric's time for the verbs objects of programs. It stands while a request is
    answered."""

    def frozen(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        """Does nothing: the driver runs the fabric."""

    def _go_on(self) -> None:
        """Does nothing: no task of this process waits for emulated time."""


def job(channel: Channel) -> None:
    """Sets up the NICs, and serves programs until the lab ends.

    The lab receives the far end of a second channel, for queries about faults.
    """
    channel.send(Ready(os.getpid()))
    setup = channel.expect(SetUpNics)
    files = channel.take_files()
    queries, far = channel_pair()
    with closing(queries), far, ExitStack() as stack:
        nics = (_ExactNics if setup.exact else _RealNics)(stack, channel, queries, setup, files)
        channel.send(nics.tables.layouts, [*nics.tables.files, far.fileno()])
        nics.begin(channel.expect(Start))
        nics.serve()


class _Nics(ABC):
    """The running NICs."""

    def __init__(
        self,
        stack: ExitStack,
        channel: Channel,
        queries: Channel,
        setup: SetUpNics,
        files: Sequence[int],
    ) -> None:
        self._channel, self._queries = channel, queries
        spec, subnet = spec_of_nics(setup), setup.subnet
        topology = spec.topology.build()
        contexts: dict[str, Context] = {}
        fabric = stack.enter_context(
            Fabric(spec, topology, NodeSubset.HOSTS, subnet=subnet, exact=setup.exact)
        )
        clock = _ServedClock(fabric)
        for host in topology.hosts:
            levels = (lambda: subnet.levels) if subnet else dict
            contexts[host.name] = Context(clock, host, subnet, levels=levels)
            stack.callback(contexts[host.name].close)
        fabric.connect()
        self._ip: IpInterfaces | None = None
        if setup.ip:
            assert subnet is not None, "on Ethernet a host's kernel uses the cable itself"
            nics = {one.host: one.core for one in contexts.values()}
            self._ip = IpInterfaces(spec, nics, subnet)
        self._fabric, self._event = fabric, clock.event
        *shared, listener = files
        self._shown = ffi.new("struct uverbs_clock *")
        self._server = VerbsServer(
            contexts,
            by_network(setup.hosts),
            socket.socket(fileno=listener),
            self._shown,
            self._event,
        )
        lib.uverbs_set_cpu_factor(self._server.core, spec.hosts.cpu)
        self._poll = select.epoll()
        for source in (channel, queries, self._server):
            self._poll.register(source.fileno(), select.EPOLLIN)
        self._setup = setup
        self._shown.is_exact = setup.exact
        self._shown.slowdown = setup.slowdown
        self._shown.realtime_ns = time.time_ns() // 10**9 * 10**9
        self._shown.monotonic_ns = time.monotonic_ns() // 10**9 * 10**9
        self.tables = NicTables(fabric, ProgramNics(contexts.values()))
        self._attach(stack, shared)

    @abstractmethod
    def _attach(self, stack: ExitStack, shared: Sequence[int]) -> None:
        """Makes the driver that runs the NICs until the stack ends. `shared`: open files of the lab
        for it."""

    @abstractmethod
    def _join(self, at_ns: int) -> None:
        """Lets emulated time begin, or go on, at this instant of CLOCK_MONOTONIC."""

    @abstractmethod
    def _turn(self) -> None:
        """Answers programs, takes their work, lets time pass, gives them completions."""

    def begin(self, start: Start) -> None:
        self._shown.from_ns = start.at_ns
        self._join(start.at_ns)
        self._fabric.add_faults(tuple(map(Fault.model_validate, start.faults)), start.fault_numbers)
        self._fabric.start()

    def serve(self) -> NoReturn:
        posted = 0.0
        while True:
            self._turn()
            if time.monotonic() - posted > _SECONDS_BETWEEN_POSTS:
                self.tables.post()
                posted = time.monotonic()

    def _answer(self) -> None:
        """Answers what is there."""
        self._answer_lab()
        self._server.answer()

    def _answer_lab(self) -> None:
        """Answers the lab's queries. Raises EOFError when the lab ends."""
        for descriptor, _ in self._poll.poll(0):
            if descriptor == self._channel.fileno():
                raise EOFError
            if descriptor == self._queries.fileno():
                self._queries.send(self._answer_query(self._queries.receive()))

    def _answer_query(self, query: Message) -> Message:
        if isinstance(query, CountPrograms):
            return ProgramCount(self._server.count_programs(), self._server.count_stopped())
        return change_faults(self._fabric, query)

    def _give(self) -> None:
        lib.uverbs_give_completions(self._server.core)
        self._server.connections.go_on()
        lib.uverbs_set_time(self._server.core, self._fabric.now_ps)


class _ExactNics(_Nics):
    """On the exact clock: time passes while all programs wait."""

    def _attach(self, stack: ExitStack, shared: Sequence[int]) -> None:
        self._driver = stack.enter_context(
            ExactDriver(self._fabric, step_ps=STEP_PS, wake=self._poll.fileno())
        )
        attach_nics(self._driver, self._fabric, self._setup.hosts)
        self._shared = shared

    def _join(self, at_ns: int) -> None:
        memory, nudge, resume = self._shared
        self._driver.join(memory, Wakes(nudge, resume), endless=True)
        self._rests_since_ps = 0
        self._programs = RunningPrograms()
        self._may_jump = False
        self._idle = select.epoll()
        for source in (self._poll.fileno(), self._driver.nudge, self._server.bell):
            self._idle.register(source, select.EPOLLIN)

    def _turn(self) -> None:
        server, now_ps = self._server.core, self._fabric.now_ps
        if not lib.uverbs_settle(server, self._poll.fileno()):
            self._rests_since_ps = now_ps
            self._answer()
            return
        if lib.uverbs_seems_to_wait(server):
            self._rests_since_ps = now_ps  # it may compute, and must be looked at
        lib.uverbs_charge(server, now_ps)
        lib.uverbs_take_requests(server, now_ps)
        self._server.delayed.carry_out(now_ps)
        until_ps = max(self._earliest_end(now_ps), now_ps)
        if self._must_look_again(until_ps - now_ps, until_ps == _NEVER):
            return
        lib.uverbs_let_time_pass(server)
        self._event[0] = False
        self._driver.stop_at_event(self._event, None if until_ps == _NEVER else until_ps)
        while (outcome := self._driver.run(seconds=_SECONDS_A_TURN)) not in _PROGRAMS_TURN:
            self._answer_lab()  # programs may not post: time up to `until` is promised
        if self._event[0] or self._earliest_wait(now_ps) <= self._fabric.now_ps:
            self._rests_since_ps = self._fabric.now_ps
        self._give()
        if outcome is not Outcome.EVENT:
            self._rest(stands=outcome is Outcome.STANDS)

    def _must_look_again(self, jump_ps: int, is_endless: bool) -> bool:
        """Whether a program may be at work that wakes another one, or itself wakes up, before a
        long jump of time. Once none is, all are looked at again."""
        if is_endless or jump_ps <= _SHORTEST_LIMIT_PS or self._may_jump:
            self._may_jump = False
            return False
        if self._programs.hold():
            self._poll.poll(_SECONDS_A_LOOK)
        else:
            self._may_jump = True
        return True

    def _rest(self, *, stands: bool) -> None:
        """Waits until there is something to do. `stands`: waits of programs do not end."""
        server = self._server.core
        if lib.uverbs_rest(server) and (stands or self._earliest_wait(_NEVER) == _NEVER):
            self._idle.poll(_SECONDS_A_LOOK if lib.uverbs_seems_to_wait(server) else None)
        lib.uverbs_end_rest(server)

    def _earliest_wait(self, now_ps: int) -> int:
        return int(lib.uverbs_earliest_end(self._server.core, now_ps))

    def _earliest_end(self, now_ps: int) -> int:
        """Up to when emulated time may run: a wait of a program ends, or the connection manager's
        patience. _NEVER: until something happens."""
        ends = [self._earliest_wait(now_ps)]
        if (of_connections := self._server.connections.deadline_ps) is not None:
            ends.append(of_connections)
        if self._server.delayed:
            ends.append(now_ps + _PS_BETWEEN_DELAYED)
        end = min(ends)
        limit_ps = max(now_ps - self._rests_since_ps, _SHORTEST_LIMIT_PS)
        return end if end == _NEVER else min(end, now_ps + limit_ps)


class _RealNics(_Nics):
    """On the real clock: time passes as on the wall."""

    def _attach(self, stack: ExitStack, shared: Sequence[int]) -> None:
        self._driver = stack.enter_context(
            AfPacketDriver(self._fabric, slowdown=self._setup.slowdown, wake=self._poll.fileno())
        )
        attach(self._driver, self._fabric, self._setup)
        self._driver.finish_on(self._event)

    def _join(self, at_ns: int) -> None:
        self._at_ns = at_ns
        self._server.answer_bell()
        self._fabric.prefault()
        be_punctual()
        if self._ip:
            plug_in(self._driver, self._ip, self._setup)

    def _turn(self) -> None:
        self._answer()
        self._server.delayed.carry_out(self._fabric.now_ps)
        lib.uverbs_take_requests(self._server.core, self._fabric.now_ps)
        self._event[0] = False
        self._driver.run(self._at_ns, seconds=_SECONDS_A_TURN)
        self._give()


if __name__ == "__main__":
    serve(job)
