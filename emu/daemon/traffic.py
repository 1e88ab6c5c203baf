"""The traffic of an interactive lab: one workload at a time, each with a NIC process of its own.

So every start is like the first: new queue pairs, new memory, counters and times from zero. Only
packet sequence numbers continue, so that a capture over several starts shows no packet twice. To
stop a workload is to end its NICs: packets on their way to them are lost, as when servers lose
power.

InfiniBand's hosts need NICs for IP, too. Between two workloads there are idle NICs; IP stops for
some 60 ms while one process takes over from the other.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial

from emu.daemon.fidelity import judged
from emu.daemon.latest_counters import LatestCounters
from emu.daemon.messages import TrafficStatus
from emu.daemon.nics import Nics, needed, prepare
from emu.errors import UsageError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Failure, Progress
from emu.lab.ipc.queries import GetTiming, ShimTiming
from emu.lab.ipc.rpc import RpcClient
from emu.lab.nic_process import NicProcess
from emu.lab.observation_file import read_observation
from emu.lab.processes import carry_out, set_up_tcp
from emu.lab.session import Programs, Session
from emu.lab.supervisor import Supervisor


@dataclass(frozen=True)
class _Workload:
    """One that has begun."""

    nics: NicProcess
    tcp: Channel | None
    before: ShimTiming
    """Of the shim until then."""


class Traffic:
    """Starts and stops workloads. Any thread may call it."""

    def __init__(
        self, session: Session, supervisor: Supervisor, shim: RpcClient, nics: Nics, slowdown: float
    ) -> None:
        self._session = session
        self._supervisor = supervisor
        self._shim = shim
        self._nics = nics
        self._slowdown = slowdown
        self._changing = threading.RLock()
        self._process: NicProcess | None = None
        self._tcp_pid: int | None = None
        self.latest = LatestCounters()
        self.status = TrafficStatus()

    def start(self) -> None:
        """Starts the spec's workload. Raises UsageError when it has none, or one runs."""
        with self._changing:
            if not self._session.spec.traffic:
                raise UsageError("the lab's spec has no `traffic:`; nothing to start")
            if self.status.state == "running":
                raise UsageError("its traffic runs; `emu traffic stop` ends it")
            self._refuse_tcp_without_ib0()
            self._launch()
            self.status = TrafficStatus(number=self.status.number + 1, state="running")

    def stop(self) -> None:
        """Stops it. Raises UsageError when none runs."""
        with self._changing:
            if self.status.state != "running":
                raise UsageError("no traffic runs; `emu traffic start` starts it")
            self._dismiss(replace(self.status, state="stopped"))

    def _refuse_tcp_without_ib0(self) -> None:
        if self._has_tcp and not self._session.has_ip:
            raise UsageError("its traffic is TCP, and its hosts have no ib0; see `emu status`")

    @property
    def _has_tcp(self) -> bool:
        return bool(self._session.spec.streams().flows)

    def _launch(self) -> None:
        """The thread that follows the workload starts before the workload does."""
        launched: Future[_Workload] = Future()
        threading.Thread(target=self._follow, args=(launched,), daemon=True).start()
        try:
            launched.set_result(self._begin())
        except BaseException as error:
            launched.set_exception(error)
            raise

    def _begin(self) -> _Workload:
        """Ends the processes that it started, should it fail."""
        setup = self._session.nic_setup(starts=self.status.number)
        with ExitStack() as started:
            process = prepare(self._supervisor, setup, self._session.spec.name)
            started.enter_context(needed(self._supervisor, process))
            tcp = tcp_pid = None
            if self._has_tcp:
                tcp = self._supervisor.spawn("the TCP process", Programs().tcp)
                started.enter_context(self._supervisor.needed(tcp))
                tcp_pid = set_up_tcp(tcp, self._session.tcp_setup())
            before = self._shim.ask(GetTiming())
            self._nics.begin(process, *([tcp] if tcp else []), with_traffic=True)
        self.latest.replace(process)
        self._process, self._tcp_pid = process, tcp_pid
        return _Workload(process, tcp, before)

    def _follow(self, launched: Future[_Workload]) -> None:
        """To the workload's end. Where it was stopped, or the lab ends, others see to that.

        The channels are closed here, where they are read, once their processes were dismissed.
        """
        if launched.exception() is not None:  # the client that started it gets the error
            return
        workload = launched.result()
        try:
            self._see_to_the_end(workload)
        except EOFError:
            pass
        except Exception as error:
            self._fail(workload, error)
        for gone in (workload.nics.channel, workload.tcp):
            if gone is not None:
                gone.close()

    def _see_to_the_end(self, workload: _Workload) -> None:
        nics = workload.nics
        streams = carry_out(nics.channel, workload.tcp, partial(self._progress, workload))
        seen = read_observation(*nics.channel.take_files())
        self._nics.have_done(nics, seen.faults)
        after = self._shim.ask(GetTiming())
        fidelity = judged(self._session.spec, self._slowdown, workload.before, after, seen)
        with self._changing:
            if nics is self._process:
                over = replace(self.status, state="over", fidelity=fidelity)
                self._dismiss(replace(over, flows=(*seen.flows, *streams.flows)))

    def _fail(self, workload: _Workload, error: Exception) -> None:
        """Notes the error in the state: the client that started the traffic waits no more."""
        with self._changing:
            if workload.nics is self._process:
                with suppress(Exception):  # the reason stays the first error
                    text = Failure.of(error).text
                    self._dismiss(replace(self.status, state="failed", error=text))

    def _progress(self, workload: _Workload, message: Progress) -> None:
        with self._changing:
            if workload.nics is self._process:
                self.status = replace(self.status, progress=message.moment)

    def _dismiss(self, status: TrafficStatus) -> None:
        """Ends the workload's processes. It has this status then, or has failed if they cannot be
        ended."""
        self._process = None
        try:
            self._send_away()
        except Exception as error:
            text = status.error or Failure.of(error).text
            status = replace(status, state="failed", error=text)
            raise
        finally:
            self.status = status

    def _send_away(self) -> None:
        if self._tcp_pid is not None:
            self._supervisor.dismiss(self._tcp_pid)
            self._tcp_pid = None
        if self._session.plan.ib0:
            setup = self._session.nic_setup(idle=True)
            process = prepare(self._supervisor, setup, self._session.spec.name)
            with needed(self._supervisor, process):
                self._nics.begin(process, with_traffic=False)
        else:
            self._nics.dismiss()
