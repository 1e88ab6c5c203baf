"""The traffic of a standing lab: one workload at a time, each with a NIC process of its own.

Starting it anew is thus the same as starting it: fresh queue pairs, fresh memory,
counters from zero, and its times begin with it. Only PSNs go on, so that a capture over
several starts does not show packets twice. Stopping it is taking the NICs
away; what is on its way to them is lost, as when servers lose their power.

InfiniBand's hosts need their NICs for IP too: between two workloads idle NICs are there,
and IP stands still for the moment, some 60 ms, in which one process takes over from the other.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from emu.daemon.fidelity import judged
from emu.daemon.nics import Nics, needed, prepare
from emu.daemon.shown import ShownBoards
from emu.errors import UsageError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.messages import Failure, Json, Measure, Progress
from emu.lab.ipc.rpc import Line
from emu.lab.job import read_observation
from emu.lab.nic_process import NicProcess
from emu.lab.processes import carry_out, set_up
from emu.lab.session import Programs, Session, idle, setup_now
from emu.lab.supervisor import Supervisor

_FRESH: Json = {"progress": None, "flows": [], "fidelity": None, "error": None}
"""What there is to tell of a workload that has not come to its end."""


@dataclass(frozen=True)
class _Workload:
    """One that has begun."""

    nics: NicProcess
    tcp: Channel | None
    before: Json
    """How punctual the shim has been until then."""


class Traffic:
    """Starts and stops workloads. Any thread may call it."""

    def __init__(
        self, session: Session, supervisor: Supervisor, shim: Line, nics: Nics, slowdown: float
    ) -> None:
        self._session = session
        self._supervisor = supervisor
        self._shim = shim
        self._nics = nics
        self._slowdown = slowdown
        self._changing = threading.RLock()
        self._process: NicProcess | None = None
        self._tcp_pid: int | None = None
        self.shown = ShownBoards()
        self.state: Json = {**_FRESH, "number": 0, "state": "none"}
        """What `emu status` shows. `state`: none, running, over, stopped, failed (see `error`)."""

    def start(self) -> None:
        """Starts the spec's workload. Raises UsageError when it has none, or one runs."""
        with self._changing:
            if not self._session.spec.traffic:
                raise UsageError("the lab's spec has no `traffic:`; nothing to start")
            if self.state["state"] == "running":
                raise UsageError("its traffic runs; `emu traffic stop` ends it")
            self._refuse_tcp_without_ib0()
            self._launch()
            number = self.state["number"] + 1
            self.state = {**_FRESH, "number": number, "state": "running"}

    def stop(self) -> None:
        """Stops it. Raises UsageError when none runs."""
        with self._changing:
            if self.state["state"] != "running":
                raise UsageError("no traffic runs; `emu traffic start` starts it")
            self._dismiss("stopped")

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
        setup = setup_now(self._session)
        setup = replace(setup, options={**setup.options, "starts": self.state["number"]})
        with ExitStack() as started:
            process = prepare(self._supervisor, setup, self._session.spec.name)
            started.enter_context(needed(self._supervisor, process))
            tcp = tcp_pid = None
            if self._has_tcp:
                tcp = self._supervisor.spawn("the TCP process", Programs().tcp)
                started.enter_context(self._supervisor.needed(tcp))
                tcp_pid = set_up(tcp, self._session.setup)
            before = self._shim.ask(Measure())
            self._nics.begin(process, *([tcp] if tcp else []), with_traffic=True)
        self.shown.show(process)
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
        self._nics.have_done(nics, map(asdict, seen.faults))
        after = self._shim.ask(Measure())
        fidelity = judged(self._session.spec, self._slowdown, workload.before, after, seen)
        with self._changing:
            if nics is self._process:
                flows = [*(asdict(flow) for flow in seen.flows), *streams["flows"]]
                self._dismiss("over", flows=flows, fidelity=asdict(fidelity))

    def _fail(self, workload: _Workload, error: Exception) -> None:
        """Notes the error in the state: the client that started the traffic waits no more."""
        with self._changing:
            if workload.nics is self._process:
                with suppress(Exception):  # the reason stays the first error
                    self._dismiss("failed", error=Failure.of(error).text)

    def _progress(self, workload: _Workload, told: Progress) -> None:
        with self._changing:
            if workload.nics is self._process:
                self.state = {**self.state, "progress": told.moment}

    def _dismiss(self, state: str, **told: Any) -> None:
        """Takes the workload away, and says what became of it: `failed` where that fails."""
        self._process = None
        try:
            self._send_away()
        except Exception as error:
            state, told = "failed", {"error": Failure.of(error).text, **told}
            raise
        finally:
            self.state = {**self.state, "state": state, **told}

    def _send_away(self) -> None:
        if self._tcp_pid is not None:
            self._supervisor.dismiss(self._tcp_pid)
            self._tcp_pid = None
        if self._session.setup.options["ip"]:
            setup = idle(setup_now(self._session))
            process = prepare(self._supervisor, setup, self._session.spec.name)
            with needed(self._supervisor, process):
                self._nics.begin(process, with_traffic=False)
        else:
            self._nics.dismiss()
