"""What runs a spec, whichever the clock.

A new clock is a module with a `Runner` and a line in `_RUNNERS`. Modules of clocks are imported
when they are needed: the real one needs Mininet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from emu.bgp.recorder import with_learned_routes
from emu.clocks import Clock
from emu.errors import UsageError
from emu.measure.recording import Recording
from emu.measure.run_estimate import RunEstimate
from emu.measure.run_progress import RunProgress
from emu.models import MODELS, PACKETS
from emu.spec.diagnostic import unknown_name
from emu.spec.scenario import Spec


def ignore(_: object) -> None:
    """For progress and messages that nobody reads."""


class Runner(ABC):
    """Runs specs on one clock."""

    clock: ClassVar[Clock]

    @abstractmethod
    def refuse(self, spec: Spec) -> None:
        """Raises UsageError for a spec that this clock cannot run."""

    def run(
        self,
        spec: Spec,
        *,
        out: Path,
        on_progress: Callable[[RunProgress], None] = ignore,
        on_note: Callable[[str], None] = ignore,
    ) -> Recording:
        """Runs the spec until its workload is over or its time limit is reached.

        Captures are written into the folder `out`; `on_note` gets sentences for the user. Raises
        UsageError as `refuse` does, and HostError and FabricError where BGP is the control plane
        and its routes must be recorded first (emu.bgp.recorder).
        """
        self.refuse(spec)
        if spec.recorded_routes is None:
            spec = with_learned_routes(spec, on_note)
        return self._run(spec, out=out, on_progress=on_progress, on_note=on_note)

    @abstractmethod
    def _run(
        self,
        spec: Spec,
        *,
        out: Path,
        on_progress: Callable[[RunProgress], None],
        on_note: Callable[[str], None],
    ) -> Recording:
        """Runs a spec that the clock does not refuse, and whose routes are known."""

    def estimate(self, spec: Spec) -> RunEstimate | None:
        """The memory and the time that the run takes; None where nothing estimates them."""
        return None

    def for_series(self, specs: Sequence[Spec]) -> Runner:
        """A runner for these specs, of one fabric, which differ in their traffic alone.

        It works out once what they have in common.
        """
        return self

    def with_threads(self, threads: int) -> Runner:
        """A runner that uses so many threads. Raises UsageError where it has no choice."""
        raise UsageError(
            "--threads: only packets on the virtual clock run on several threads; leave it out, or "
            "use --clock virtual"
        )

    def over_ranks(self) -> Runner:
        """A runner on all processes that mpirun started. Raises UsageError where there is none."""
        raise UsageError(
            "mpirun: only packets on the virtual clock run over several processes; use --clock "
            "virtual, or leave mpirun out"
        )


def runner_on(clock: str) -> Runner:
    """The runner of a clock, by its name. Raises UsageError: no such clock."""
    if clock not in _RUNNERS:
        raise UsageError(unknown_name("clock", clock, list(_RUNNERS)))
    return _RUNNERS[clock]()


def _virtual() -> Runner:
    from emu.runtime.virtual import VirtualRunner

    return VirtualRunner()


def _real() -> Runner:
    from emu.runtime.real import RealRunner

    return RealRunner()


def runner_of(model: str, clock: str) -> Runner:
    """The runner of a model, by its name; that of packets runs on this clock. Raises UsageError: no
    such model or clock."""
    if model not in MODELS:
        raise UsageError(unknown_name("model", model, list(MODELS)))
    if MODELS[model] is PACKETS:
        return runner_on(clock)
    from emu.runtime.flow import FlowRunner

    return FlowRunner()


def _exact() -> Runner:
    from emu.runtime.exact import ExactRunner

    return ExactRunner()


_RUNNERS: dict[str, Callable[[], Runner]] = {
    "virtual": _virtual,
    "exact": _exact,
    "real": _real,
}
