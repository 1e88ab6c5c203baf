"""The exact clock: a lab whose emulated time waits for its frames.

Namespaces, Open vSwitch, the eBPF marker and the frames on the interfaces are real; the times are
those of the virtual clock. So both give the same results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from emu.clocks import EXACT, REAL
from emu.errors import HostError, UsageError
from emu.lab.ipc.jobs import RunExact, RunResult
from emu.lab.ipc.messages import Progress
from emu.lab.namespace import run_in_lab
from emu.lab.observation_file import read_observation
from emu.measure.merge import merge_observations
from emu.measure.recording import Recording
from emu.measure.run_progress import RunProgress
from emu.runtime.obstacle import Obstacle, elided_payload
from emu.runtime.runner import Runner
from emu.spec.outages import slowest_convergence_ps
from emu.spec.scenario import Spec
from emu.subnet.sm_sweeps import swept
from emu.subnet.subnet import Subnet


def obstacle(spec: Spec) -> Obstacle | None:
    """What in this spec the exact clock cannot run, if there is anything."""
    if spec.streams().flows:
        return Obstacle(
            "stack: tcp is the TCP of this machine's kernel, whose time is real",
            REAL,
            "stack: rdma",
        )
    if elided := elided_payload(spec):
        return elided
    ecns = (spec.port(port).ecn for port in spec.topology.build().switch_ports)
    if any(ecn is not None and ecn.marker == "red" for ecn in ecns):
        return Obstacle(
            "switches.ecn.marker: red has its queues in the kernel, whose time is real",
            REAL,
            "--set switches.ecn.marker=auto",
        )
    return None


class ExactRunner(Runner):
    """Runs each spec in a lab of its own.

    Raises HostError when the machine lacks something, FabricError when the lab died or the machine
    lost or changed a frame, and KeyboardInterrupt; the lab is gone by then.
    """

    clock = EXACT

    def __init__(self, subnet: Subnet | None = None) -> None:
        """`subnet`: the subnet manager's decisions for all specs that are run; worked out for each
        one where it is not given."""
        self._subnet = subnet

    def refuse(self, spec: Spec) -> None:
        if found := obstacle(spec):
            raise UsageError(str(found))

    def for_series(self, specs: Sequence[Spec]) -> ExactRunner:
        first, *others = specs
        return ExactRunner(swept(first, first.topology.build(), *others))

    def _run(
        self,
        spec: Spec,
        *,
        out: Path,
        on_progress: Callable[[RunProgress], None],
        on_note: Callable[[str], None],
    ) -> Recording:
        topology = spec.topology.build()
        subnet = self._subnet or swept(spec, topology)
        began = time.monotonic()

        def relay(message: Progress) -> None:
            if message.moment is not None:
                on_progress(message.moment)

        job = RunExact(spec.to_json(), str(out.resolve()), subnet)
        result, files = _run_in_lab(job, relay)
        observations = [read_observation(file) for file in files]
        ended_ps = 1000 * int(observations[0].samples.time_ns[-1])
        return merge_observations(
            spec,
            topology,
            observations,
            plane=result.plane,
            clock=EXACT,
            slowdown=1,
            marker=result.marker,
            wall_seconds=time.monotonic() - began,
            captures={name: out / Path(path).name for name, path in result.captures.items()},
            notes=(
                *(subnet.notes_up_to(ended_ps - slowest_convergence_ps(spec)) if subnet else ()),
                *result.notes,
            ),
        )


def _run_in_lab(job: RunExact, relay: Callable[[Progress], None]) -> tuple[RunResult, list[int]]:
    """Raises HostError with what to use instead of a lab."""
    try:
        return run_in_lab(job, on_progress=relay, may_be_stopped=False)
    except HostError as error:
        instead = "or use --clock virtual, which needs no lab and gives the same results"
        raise HostError(error.what, remedy=f"{error.remedy}; {instead}") from None
