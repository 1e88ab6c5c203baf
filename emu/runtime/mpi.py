"""The virtual clock over several processes, which `mpirun` starts, on one machine or more.

The fabric is cut into parts. Each process (rank) builds and runs a share of them. After each window
(emu/core/sim/part.h) every rank sends every other one packet: the frames that passed the cut, and
when its next event is due (emu/runtime/rank_fabric.py). Rank 0 reads the spec, runs the subnet
manager, gathers the results, and reports; the others print nothing but errors.

The results are the same bytes as those of one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import emu
from emu.bindings.capture import CaptureFile, capture_file
from emu.bindings.gather import gather
from emu.bindings.partition import Partition, partition
from emu.clocks import VIRTUAL
from emu.errors import HostError, UsageError
from emu.measure.live_progress import LiveProgress
from emu.measure.observation import Observation
from emu.measure.recording import Recording
from emu.measure.run_progress import RunProgress
from emu.resources import keep_freed_memory
from emu.runtime.mpi_world import PIECE_BYTES, World
from emu.runtime.rank_fabric import RankFabric, Task
from emu.runtime.runner import Runner
from emu.runtime.virtual import VirtualRunner, recording_of, recording_so_far
from emu.spec.scenario import Spec
from emu.spec.threads import parts_for
from emu.subnet.sm_sweeps import swept
from emu.subnet.subnet import Subnet
from topologies.graph import Topology

_world = cache(World)


@contextmanager
def first_rank() -> Iterator[None]:
    """For all runs of rank 0. The other ranks end when it ends."""
    world = _world()
    try:
        yield
    finally:
        world.tell(None)
        world.end()


def assist() -> None:
    """What the ranks other than 0 do: they take part in the runs of rank 0."""
    world = _world()
    keep_freed_memory()
    while (task := world.tell(None)) is not None:
        try:
            if task.version != emu.__version__:
                raise HostError(
                    f"emu {emu.__version__} is installed here, and {task.version} at rank 0",
                    remedy="install the same version on all machines",
                )
            _assist_run(world, task)
        except BaseException as error:
            world.abort(error)
    world.end()


class MpiRunner(Runner):
    """Runs specs on all ranks. This is the side of rank 0."""

    clock = VIRTUAL

    def __init__(self, subnet: Subnet | None = None, threads: int | None = None) -> None:
        """`subnet`: as for `VirtualRunner`; `threads`: of each rank, None for one."""
        self._subnet = subnet
        self._threads = threads or 1

    def refuse(self, spec: Spec) -> None:
        VirtualRunner().refuse(spec)

    def with_threads(self, threads: int) -> MpiRunner:
        return MpiRunner(self._subnet, threads)

    def _run(
        self,
        spec: Spec,
        *,
        out: Path,
        on_progress: Callable[[RunProgress], None],
        on_note: Callable[[str], None],
    ) -> Recording:
        world, topology = _world(), spec.topology.build()
        cut = _cut(spec, topology, world.ranks, self._threads)
        subnet = self._subnet or swept(spec, topology)
        task = Task(emu.__version__, spec, subnet, cut, self._threads)
        world.tell(task)
        try:
            return _run(world, task, topology, out, on_progress)
        except BaseException as error:
            world.abort(error)


def _cut(spec: Spec, topology: Topology, ranks: int, threads: int) -> Partition:
    """Raises UsageError for a fabric with fewer parts than ranks."""
    parts = parts_for(len(topology.hosts), ranks * threads)
    graph = spec.workload()
    for wanted in range(parts, parts + len(topology.nodes)):
        cut = partition(spec, topology, graph, wanted, 1)
        if cut.parts >= ranks:
            break
    else:
        most = f"mpirun -n {cut.parts}" if cut.parts > 1 else "no mpirun"
        raise UsageError(
            f"mpirun: this fabric can be cut into {cut.parts} parts, fewer than the {ranks} "
            f"processes; use {most}"
        )
    return cut


# ---- a run ---------------------------------------------------------------------------------------


def _run(
    world: World,
    task: Task,
    topology: Topology,
    out: Path,
    on_progress: Callable[[RunProgress], None],
) -> Recording:
    """At rank 0. `out`: the folder for captures."""
    began = time.monotonic()
    with RankFabric(world, task, topology) as run, capture_file(run.fabric) as capture:
        run.start()
        so_far = partial(_so_far, world, run, capture, began)
        for _ in run.stretches(task.spec.time_limit_ps):
            capture.drain()
            on_progress(LiveProgress(**vars(run.progress()), so_far=so_far))
            world.all.bcast(False)  # no more of `so_far`
        observation, now_ps = _gather(world, run, capture, is_over=True), run.now_ns * 1000
        captures = capture.convert(out)
    assert observation is not None, "rank 0 has it"
    return recording_of(run, observation, now_ps, captures, began)


def _so_far(
    world: World, run: RankFabric, capture: CaptureFile, began: float, out: Path
) -> Recording:
    """The recording of a run that goes on, at rank 0."""
    world.all.bcast(True)
    observation = _gather(world, run, capture, is_over=False)
    assert observation is not None, "rank 0 has it"
    return recording_so_far(run, observation, capture.convert_so_far(out), began)


def _assist_run(world: World, task: Task) -> None:
    """At the other ranks."""
    topology = task.spec.topology.build()
    with RankFabric(world, task, topology) as run, capture_file(run.fabric) as capture:
        run.start()
        for _ in run.stretches(task.spec.time_limit_ps):
            capture.drain()
            run.progress()
            while world.all.bcast(None):
                _gather(world, run, capture, is_over=False)
        _gather(world, run, capture, is_over=True)


def _gather(
    world: World, run: RankFabric, capture: CaptureFile, *, is_over: bool
) -> Observation | None:
    """The observation of all ranks, at rank 0, which gets their records of captures, too."""
    observation = gather(run.fabric, run.endpoints, world, is_over=is_over)
    for piece in world.collect(() if world.is_first else capture.pieces(PIECE_BYTES)):
        capture.add(piece)
    return observation
