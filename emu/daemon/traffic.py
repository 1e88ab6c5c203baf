"""The traffic of an interactive lab: one workload at a time, each with a NIC process of its own.

So every start is like the first: new queue pairs, new memory, counters and times from zero. Only
packet sequence numbers continue, so that a capture over several starts shows no packet twice.
Stopping a workload ends its NICs: packets in flight to them are lost, as when servers lose power.

InfiniBand's hosts also need NICs for IP. Between two workloads idle NICs carry it; IP stops for
some 60 ms while one process replaces the other.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial

from emu.daemon.lab_clock import Judge, LabClock
from emu.daemon.latest_counters import LatestCounters
from emu.daemon.messages import TrafficStatus
from emu.daemon.nics import Nics, needed, prepare
from emu.errors import UsageError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Failure, Progress
from emu.lab.nic_process import NicProcess
from emu.lab.observation_file import read_observation
from emu.lab.processes import carry_out, set_up_tcp
from emu.lab.session import Programs, Session
from emu.lab.supervisor import Supervisor
from emu.words import on_hosts


@dataclass(frozen=True)
class _Workload:
    """A workload that has begun."""

    nics: NicProcess
    tcp: Channel | None
    judge: Judge


class Traffic:
    """Starts and stops workloads. Any thread may call it."""

    def __init__(
        self, session: Session, supervisor: Supervisor, clock: LabClock, nics: Nics
    ) -> None:
        self._session = session
        self._supervisor = supervisor
        self._clock = clock
        self._nics = nics
        self._changing = threading.RLock()
        self._process: NicProcess | None = None
        self._tcp_pid: int | None = None
        self.latest = LatestCounters()
        self.status = TrafficStatus()

    def start(self) -> None:
        """Starts the spec's workload. Raises UsageError if there is none, or it runs already."""
        with self._changing:
            if not self._session.spec.traffic:
                raise UsageError("the lab's spec has no `traffic:`; nothing to start")
            if self.status.state == "running":
                raise UsageError("the lab's traffic runs already; `emu traffic stop` ends it")
            self._refuse_tcp_without_ib0()
            self._refuse_beside_programs()
            self._launch()
            self.status = TrafficStatus(number=self.status.number + 1, state="running")

    def stop(self) -> None:
        """Stops the workload. Raises UsageError if none runs."""
        with self._changing:
            if self.status.state != "running":
                raise UsageError("no traffic runs; `emu traffic start` starts it")
            with self._clock.at_one_instant():
                self._end_workload(replace(self.status, state="stopped"))

    def _refuse_tcp_without_ib0(self) -> None:
        if self._has_tcp and not self._session.has_ip:
            raise UsageError("the traffic is TCP, but the hosts have no ib0; see `emu status`")

    def _refuse_beside_programs(self) -> None:
        """The traffic's NICs would replace those that the programs use."""
        if programs := self._nics.programs().by_host:
            raise UsageError(
                f"verbs programs use the hosts' NICs: {on_hosts(programs)}; end them, or wait for "
                "their end, then start the traffic"
            )

    @property
    def _has_tcp(self) -> bool:
        return bool(self._session.spec.streams().flows)

    def _launch(self) -> None:
        """Starts the workload, after the thread that waits for its end."""
        launched: Future[_Workload] = Future()
        threading.Thread(target=self._follow, args=(launched,), daemon=True).start()
        try:
            launched.set_result(self._begin())
        except BaseException as error:
            launched.set_exception(error)
            raise

    def _begin(self) -> _Workload:
        """Starts the workload's processes. Ends those that it has started if it fails."""
        if self._nics.serve_programs:  # none is there; on the exact clock only one may be joined
            self._nics.end_present()
            self._clock.nics_ended()
        setup = self._session.nic_setup(starts=self.status.number)
        with self._clock.files_for_nics() as files, ExitStack() as started:
            process = prepare(self._supervisor, setup, self._session.spec.name, files)
            started.enter_context(needed(self._supervisor, process))
            tcp = tcp_pid = None
            if self._has_tcp:
                tcp = self._supervisor.spawn("the TCP process", Programs().tcp)
                started.enter_context(self._supervisor.needed(tcp))
                tcp_pid = set_up_tcp(tcp, self._session.tcp_setup())
            judge = self._clock.judge()
            others = [tcp] if tcp else []
            self._nics.begin(process, *others, with_traffic=True, files=files)
        self.latest.replace(process)
        self._process, self._tcp_pid = process, tcp_pid
        return _Workload(process, tcp, judge)

    def _follow(self, launched: Future[_Workload]) -> None:
        """Waits for the workload's end. Other threads stop a workload, or end the lab.

        This thread reads the channels, so it closes them after their processes have ended.
        """
        if launched.exception() is not None:  # the client that started it gets the error
            return
        workload = launched.result()
        try:
            self._complete(workload)
        except EOFError:
            pass
        except Exception as error:
            self._fail(workload, error)
        for channel in (workload.nics.channel, workload.tcp):
            if channel is not None:
                channel.close()

    def _complete(self, workload: _Workload) -> None:
        nics = workload.nics
        streams = carry_out(nics.channel, workload.tcp, partial(self._progress, workload))
        seen = read_observation(*nics.channel.take_files())
        self._nics.workload_over(nics, seen.faults)
        self._clock.finish()
        fidelity = workload.judge(seen)
        with self._changing:
            if nics is self._process:
                over = replace(self.status, state="over", fidelity=fidelity)
                self._end_workload(replace(over, flows=(*seen.flows, *streams.flows)))

    def _fail(self, workload: _Workload, error: Exception) -> None:
        """Records the error in the status, because the client that started the traffic has gone."""
        with self._changing:
            if workload.nics is self._process:
                with suppress(Exception):  # keep the first error
                    text = Failure.of(error).text
                    self._end_workload(replace(self.status, state="failed", error=text))

    def _progress(self, workload: _Workload, message: Progress) -> None:
        with self._changing:
            if workload.nics is self._process:
                self.status = replace(self.status, progress=message.moment)

    def _end_workload(self, status: TrafficStatus) -> None:
        """Ends the workload's processes and sets its status, `failed` if they cannot be ended."""
        self._process = None
        try:
            if why := self._end_processes():
                status = replace(status, state="failed", error=why)
        except Exception as error:
            text = status.error or Failure.of(error).text
            status = replace(status, state="failed", error=text)
            raise
        finally:
            self.status = status

    def _end_processes(self) -> str:
        """Ends the workload's processes. Returns why the lab's clock has failed, if it has."""
        if self._tcp_pid is not None:
            self._supervisor.end_process(self._tcp_pid)
            self._tcp_pid = None
        if self._session.plan.ib0:
            setup = self._session.nic_setup(idle=True)
            process = prepare(self._supervisor, setup, self._session.spec.name)
            with needed(self._supervisor, process):
                self._nics.begin(process, with_traffic=False)
            return ""
        self._nics.end_present()
        return self._clock.nics_ended()
