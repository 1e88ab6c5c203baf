"""The virtual clock: a whole fabric in this process, as fast as the processor runs.

It needs no namespaces, no sockets and no root, and never waits. The core is the same as in a
lab, and the same seed gives the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from emu._core import lib
from emu.bindings.capture import CaptureFile, capture_file, captured_ports
from emu.bindings.fabric import Fabric, FrameKind, NodeSubset, gone
from emu.bindings.host_nics import HostNics
from emu.bindings.partition import Partition, partition
from emu.bindings.snapshot import PortView, QueuePairView
from emu.clocks import VIRTUAL
from emu.errors import UsageError
from emu.fabric_kind import Framing
from emu.measure.live_progress import LiveProgress
from emu.measure.merge import merge_observations
from emu.measure.observation import Observation
from emu.measure.recording import Recording
from emu.measure.records import MarkedBy
from emu.measure.run_estimate import RunEstimate, estimate_of
from emu.measure.run_progress import RunProgress
from emu.runtime.runner import Runner
from emu.spec.diagnostic import did_you_mean
from emu.spec.outages import slowest_convergence_ps
from emu.spec.scenario import Spec
from emu.spec.threads import parts_for, threads_for
from emu.subnet.sm_sweeps import swept
from emu.subnet.subnet import Subnet
from emu.units import format_time_ns
from topologies.graph import Port, Topology
from traffic.graph import OperationGraph

STEP_NS = 20_000
"""A run ends with the step in which its workload ends."""
PROGRESS_SECONDS = 0.05
"""Wall-clock time between two reports of progress, roughly."""
ELIDED_NOTES = ("payload elided: packets carried their headers only, no message was compared",)


class VirtualFabric:
    """A fabric with its workload on the virtual clock, which Python can step.

    Use it as a context manager. Times are emulated nanoseconds; ports and flows have the
    names that reports give them. Between two steps, Python can read the state of every port and
    queue pair, and put frames on any cable as if the node there had sent them:

    >>> from pathlib import Path
    >>> from emu.spec.load import load_spec
    >>> pause = bytes.fromhex("0180c2000001 020000000001 8808 0101 0008" + 8 * "ffff")
    >>> spec = load_spec(Path("topologies/incast.emu.yml"))
    >>> with VirtualFabric(spec, spec.topology.build()) as run:
    ...     run.start()
    ...     run.run_until(40_000)
    ...     before = run.port("leaf1:h1")
    ...     run.inject("h1:leaf1", pause)
    ...     run.run_until(50_000)
    ...     after = run.port("leaf1:h1")
    ...     sender = run.queue_pair("incast.h2-h1")
    >>> before.paused[3], after.paused[3]
    (False, True)
    >>> after.queued_bytes[3] > before.queued_bytes[3]
    True
    >>> sender.acknowledged <= sender.received <= sender.next <= sender.posted
    True
    """

    def __init__(
        self,
        spec: Spec,
        topology: Topology,
        subnet: Subnet | None = None,
        workload: OperationGraph | None = None,
        *,
        threads: int = 1,
        parts: int | None = None,
        cut: Partition | None = None,
    ) -> None:
        """`subnet`: the result of `emu.subnet.sm_sweeps.manage`, for InfiniBand alone; `workload`:
        operations to use in place of the spec's; `threads`: that run the fabric, cut into so many
        parts or into `parts`; `cut`: the parts, if they are known. They change the speed and
        nothing else. Raises UsageError when these cannot run, or when InfiniBand has no subnet.
        """
        self.spec = spec
        self.topology = topology
        self.subnet = subnet
        self._graph = _workload(spec) if workload is None else _checked(workload, topology)
        if spec.fabric_kind.has_subnet_manager and subnet is None:
            raise UsageError(
                "subnet: none is given, and InfiniBand's switches forward by the tables of their "
                "subnet manager; emu.subnet.sm_sweeps.manage makes them"
            )
        cut = cut or partition(spec, topology, self._graph, parts or threads, threads)
        self.fabric = Fabric(spec, topology, NodeSubset.ALL, subnet=subnet, partition=cut)
        self._endpoints: HostNics | None = HostNics(self.fabric, self._graph, subnet)
        self._started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.endpoints.close()
        self._endpoints = None
        self.fabric.__exit__(kind, error, trace)

    @property
    def endpoints(self) -> HostNics:
        """The hosts. Raises UsageError when the fabric is closed."""
        if self._endpoints is None:
            raise gone()
        return self._endpoints

    @property
    def now_ns(self) -> int:
        return self.fabric.now_ns

    @property
    def finished(self) -> bool:
        """Whether every operation is over."""
        return self.endpoints.finished

    def start(self) -> None:
        """Brings all links up and starts the workload. Raises UsageError the second time."""
        if self._started:
            raise UsageError(
                "this fabric has already started, and can start only once; make a new one"
            )
        self._started = True
        self.fabric.capture(captured_ports(self.spec, self.topology))
        self.fabric.sample(self.endpoints.flow_bytes, self.endpoints.flow_hosts)
        self.fabric.start()
        self.endpoints.start()

    def run_until(self, now_ns: int) -> None:
        lib.fabric_run(self.fabric.core, now_ns * 1000)
        self.fabric.refuse_short_memory()

    def run_steps(self, until_ns: int) -> None:
        """Runs in whole steps until `until_ns`, the workload's end, or captures that must be
        drained, whichever comes first."""
        workload = self.endpoints.workload
        lib.fabric_run_steps(self.fabric.core, until_ns * 1000, STEP_NS * 1000, workload)
        self.fabric.refuse_short_memory()

    def port(self, name: str) -> PortView:
        """The port `name`, e.g. `leaf1:h1`, as it is now. Raises UsageError: no such port."""
        return self.fabric.view(self._named(name))

    def queue_pair(self, flow: str) -> QueuePairView:
        """The sending queue pair of `flow` as it is now. Raises UsageError: no such flow."""
        try:
            return self.endpoints.queue_pair(flow)
        except KeyError:
            raise _unknown("flow", flow, [known.name for known in self.endpoints.flows]) from None

    def inject(self, at: str, frame: bytes) -> None:
        """Puts a frame on the cable at the port `at`, now, towards the other end.

        An Ethernet frame is given without its FCS, an InfiniBand packet from LRH to VCRC;
        6 bytes are a flow-control packet there. Raises UsageError for no such port, and for
        a frame longer than the fabric carries.
        """
        kind = FrameKind.ETHERNET
        if self.fabric.spec.fabric_kind.framing is Framing.INFINIBAND:
            kind = FrameKind.IB_LINK if len(frame) == lib.FLOW_CONTROL_BYTES else FrameKind.IB
        if not self.fabric.inject(self._named(at), kind, frame):
            raise UsageError(f"{at} carries no frame of {len(frame)} bytes")

    def _named(self, port: str) -> Port:
        known = self.topology.port_named
        if port not in known:
            raise _unknown("port", port, known)
        return known[port]

    def observe(self) -> Observation:
        """All counters and samples so far."""
        return self.endpoints.observe(self.fabric.observe())

    def observe_so_far(self) -> Observation:
        """The same, without a trace in the results of the run."""
        return self.endpoints.observe(self.fabric.observe(is_over=False))

    def progress(self) -> RunProgress:
        return self.endpoints.progress(self.now_ns)


class VirtualRunner(Runner):
    """Runs specs in this process."""

    clock = VIRTUAL

    def __init__(self, subnet: Subnet | None = None, threads: int | None = None) -> None:
        """`subnet`: the subnet manager's decisions for all specs that are run; worked out for each
        one where it is not given. `threads`: None for as many as pay for themselves."""
        self._subnet = subnet
        self._threads = threads

    def refuse(self, spec: Spec) -> None:
        if spec.streams().flows:
            raise UsageError(
                "stack: tcp is the TCP of this machine's kernel, whose time is real; run it on "
                "the real clock alone, or use stack: rdma"
            )

    def estimate(self, spec: Spec) -> RunEstimate:
        return estimate_of(spec, self._threads)

    def for_series(self, specs: Sequence[Spec]) -> VirtualRunner:
        first, *others = specs
        return VirtualRunner(swept(first, first.topology.build(), *others), self._threads)

    def with_threads(self, threads: int) -> VirtualRunner:
        return VirtualRunner(self._subnet, threads)

    def over_ranks(self) -> Runner:
        from emu.runtime.mpi import MpiRunner

        return MpiRunner(self._subnet, self._threads)

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
        threads = self._threads or threads_for(len(topology.hosts))
        parts = parts_for(len(topology.hosts), threads)
        with (
            VirtualFabric(spec, topology, subnet, threads=threads, parts=parts) as run,
            capture_file(run.fabric) as capture,
        ):
            run.start()
            for _ in _stretches(run, spec.time_limit_ps):
                capture.drain()
                so_far = partial(_so_far, run, capture, began)
                on_progress(LiveProgress(**vars(run.progress()), so_far=so_far))
            observation, now_ps = run.observe(), run.now_ns * 1000
            captures = capture.convert(out)
        return recording_of(run, observation, now_ps, captures, began)


def _so_far(run: VirtualFabric, capture: CaptureFile, began: float, out: Path) -> Recording:
    """The recording of a run that goes on, with captures in the folder `out`. `began`: when, by
    `time.monotonic`."""
    return recording_so_far(run, run.observe_so_far(), capture.convert_so_far(out), began)


def recording_so_far(
    run: VirtualFabric, observation: Observation, captures: Mapping[str, Path], began: float
) -> Recording:
    """The recording of a run that goes on."""
    recording = recording_of(run, observation, run.now_ns * 1000, captures, began)
    note = f"a part of a run: up to {format_time_ns(run.now_ns)}; the run went on, or was killed"
    return replace(recording, partial=True, notes=(note, *recording.notes))


def recording_of(
    run: VirtualFabric,
    observation: Observation,
    now_ps: int,
    captures: Mapping[str, Path],
    began: float,
) -> Recording:
    spec, subnet = run.spec, run.subnet
    return merge_observations(
        spec,
        run.topology,
        [observation],
        plane="shim",
        clock=VIRTUAL,
        slowdown=1,
        marker=marker_in_use(spec),
        wall_seconds=time.monotonic() - began,
        captures=captures,
        notes=(
            *(subnet.notes_up_to(now_ps - slowest_convergence_ps(spec)) if subnet else ()),
            *(ELIDED_NOTES if spec.payload == "elided" else ()),
        ),
    )


def _stretches(run: VirtualFabric, limit_ps: int) -> Iterator[None]:
    """Runs a fabric to its end, with a pause after each stretch, for captures and progress.

    Stretches grow until each takes about as long as people wait for a new line of progress. What
    happens in the fabric does not depend on their length.
    """
    steps = 1
    while not run.finished and run.now_ns * 1000 < limit_ps:
        began = time.monotonic()
        run.run_steps(min(run.now_ns + steps * STEP_NS, -(-limit_ps // 1000)))
        seconds = time.monotonic() - began
        yield
        steps = 2 * steps if seconds < PROGRESS_SECONDS / 2 else max(1, steps // 2)


def marker_in_use(spec: Spec) -> MarkedBy:
    """`shim` when any port marks, `none` otherwise."""
    return "shim" if spec.marks_ce else "none"


def _workload(spec: Spec) -> OperationGraph:
    """The spec's own. Raises UsageError where it is not RDMA alone."""
    VirtualRunner().refuse(spec)
    return spec.workload()


def _checked(workload: OperationGraph, topology: Topology) -> OperationGraph:
    try:
        workload.check(topology.host)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return workload


def _unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    names = list(known)
    hint = did_you_mean(name, names) or f"; there are {', '.join(names[:5])}, ..."
    return UsageError(f"this fabric has no {what} {name!r}{hint}")
