"""The traffic of a standing lab: one workload at a time, each with a NIC process of its own.

Starting it anew is thus the same as starting it: fresh queue pairs, fresh memory,
counters from zero, and its times begin with it. Stopping it is taking the NICs
away; what is on its way to them is lost, as when servers lose their power.
"""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from typing import Any

from emu.errors import UsageError
from emu.lab.channel import Channel
from emu.lab.job import read_observation
from emu.lab.messages import Json, Measure, Progress, Ready, Start
from emu.lab.session import NS_UNTIL_START, Programs, Session, wait_done
from emu.lab.standing.honesty import judged
from emu.lab.standing.shim_line import ShimLine
from emu.lab.supervisor import Supervisor
from emu.measure.board import Board

_FRESH: Json = {"progress": None, "flows": [], "fidelity": None}
"""What there is to tell of a workload that has not come to its end."""


class Traffic:
    """Starts and stops workloads. Any thread may call it."""

    def __init__(
        self, session: Session, supervisor: Supervisor, shim: ShimLine, slowdown: float
    ) -> None:
        self._session = session
        self._supervisor = supervisor
        self._shim = shim
        self._slowdown = slowdown
        self._changing = threading.RLock()
        self._pid: int | None = None
        self.board: Board | None = None
        """The NICs' counters, of the latest workload."""
        self.state: Json = {**_FRESH, "number": 0, "state": "none"}
        """For whoever looks. `state`: none, running, over or stopped."""

    def start(self) -> None:
        """Starts the spec's workload. Raises UsageError when it has none, or one runs."""
        with self._changing:
            if not self._session.spec.traffic:
                raise UsageError("the lab's spec has no `traffic:`; nothing to start")
            if self.state["state"] == "running":
                raise UsageError("its traffic runs; `emu traffic stop` ends it")
            self._launch()
            number = self.state["number"] + 1
            self.state = {**_FRESH, "number": number, "state": "running"}

    def stop(self) -> None:
        """Stops it. Raises UsageError when none runs."""
        with self._changing:
            if self.state["state"] != "running":
                raise UsageError("no traffic runs; `emu traffic start` starts it")
            self._dismiss("stopped")

    def _launch(self) -> None:
        channel = self._supervisor.spawn("the NIC process", Programs().rnic)
        self._pid = channel.expect(Ready).pid
        channel.send(self._session.setup)
        legend = wait_done(channel)["board"]
        if self.board:
            self.board.close()
        (file,) = channel.take_files()
        self.board = Board(file, **legend)
        before = self._shim.ask(Measure())
        channel.send(Start(time.monotonic_ns() + NS_UNTIL_START))
        threading.Thread(
            target=self._follow, args=(channel, self._pid, before), daemon=True
        ).start()

    def _follow(self, channel: Channel, pid: int, before: Json) -> None:
        """To the workload's end. Where it was stopped, or the lab ends, others see to that."""
        try:
            wait_done(channel, self._progress)
        except EOFError:
            channel.close()
            return
        seen = read_observation(*channel.take_files())
        after = self._shim.ask(Measure())
        fidelity = judged(self._session.spec, self._slowdown, before, after, seen)
        with self._changing:
            if pid == self._pid:
                flows = [asdict(flow) for flow in seen.flows]
                self._dismiss("over", flows=flows, fidelity=asdict(fidelity))

    def _progress(self, told: Progress) -> None:
        self.state = {**self.state, "progress": told.moment}

    def _dismiss(self, state: str, **told: Any) -> None:
        assert self._pid is not None
        self._supervisor.dismiss(self._pid)
        self._pid = None
        self.state = {**self.state, "state": state, **told}
