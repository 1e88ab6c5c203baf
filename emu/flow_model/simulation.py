"""Runs a workload in the flow model of the core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from emu._core import ffi, lib
from emu.errors import FabricError
from emu.flow_model.network import Network
from emu.flow_model.routes import Column, Shares
from emu.flow_model.shapes import Shape, Shapes
from traffic.graph import OperationGraph
from traffic.verb import Verb

TOLERANCE = 1 / 256
"""The share of a message's time by which a change of rates may be late, if it is costly."""
_STEPS = 2_000_000
"""Steps of the core between two looks at its progress: a fraction of a second."""
_SAMPLE_BYTES = 16_000_000
_FEWEST_ROWS, _MOST_ROWS = 64, 1024
_FIRST_INTERVAL_PS = 500_000
_MOST_SAMPLED_FLOWS = 4096

_SHAPE = np.dtype(
    [(name, np.float64 if name == "wire_bytes" else np.int64) for name in Shape._fields]
)
_FLOW = np.dtype(
    [
        ("route", np.int32),
        ("queue", np.uint32),
        ("host", np.uint32),
        ("far", np.uint32),
        ("device", np.uint32),
    ]
)
_OPERATION = np.dtype(
    [
        ("flow", np.uint32),
        ("shape", np.uint32),
        ("first_dependent", np.uint32),
        ("dependent_count", np.uint32),
        ("not_before_ps", np.int64),
        ("not_after_ps", np.int64),
    ]
)
_RECORD = np.dtype(
    {
        "names": ["started_ps", "delivered_ps", "completed_ps", "status"],
        "formats": [np.int64, np.int64, np.int64, np.int32],
        "itemsize": ffi.sizeof("struct flow_record"),
    }
)
PENDING, SUCCESS, SKIPPED = lib.FLOW_PENDING, lib.FLOW_SUCCESS, lib.FLOW_SKIPPED


@dataclass(frozen=True)
class Progress:
    """A moment of a run."""

    now_ps: int
    bytes: int
    solutions: int
    """How often rates were worked out."""
    entries: int
    """How many links of routes that took, all together."""
    flows_done: int
    finished: bool


@dataclass(frozen=True)
class FlowSamples:
    """n rows of samples."""

    time_ns: Column
    link_bytes: Shares
    """(n, links)"""
    flow_bytes: Shares | None
    """(n, flows of the workload); None: there are too many flows."""


class Simulation:
    """A workload in the flow model. Use it as a context manager: its memory is outside Python's
    heap."""

    def __init__(
        self,
        graph: OperationGraph,
        network: Network,
        shapes: Shapes,
        *,
        tolerance: float = TOLERANCE,
    ) -> None:
        """`tolerance`: see TOLERANCE; 0: every change takes effect at once. Raises FabricError: no
        memory."""
        self._graph = graph
        self._network = network
        self._shortest_ps = _shortest_ps(graph, network, shapes)
        self._alive: list[Any] = []
        self._model = lib.flow_model_new(
            self._network_struct(), self._workload_struct(shapes), tolerance
        )
        if not self._model:
            raise FabricError(
                "there is no memory for the flow model of this workload; make it smaller"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        lib.flow_model_free(self._model)
        self._model = ffi.NULL

    def run(self, limit_ps: int, interval_ps: int | None = None) -> Iterator[Progress]:
        """Runs the workload up to a time, and stops now and then with its progress.

        `interval_ps`: of samples; by default it follows from the length of the run.
        """
        self._sample(interval_ps or _FIRST_INTERVAL_PS, limit_ps)
        lib.flow_model_start(self._model)
        while True:
            lib.flow_model_run(self._model, limit_ps, _STEPS)
            progress = self.progress()
            yield progress
            if progress.finished or progress.now_ps >= limit_ps:
                return

    def progress(self) -> Progress:
        """Raises FabricError when memory ran out."""
        seen = ffi.new("struct flow_progress *")
        lib.flow_model_look(self._model, seen)
        if seen.failed:
            raise FabricError("memory ran out in the flow model; make the workload smaller")
        return Progress(
            seen.now_ps, seen.bytes, seen.solutions, seen.entries, seen.flows_done, seen.finished
        )

    @property
    def records(self) -> NDArray[np.void]:
        """A row for each operation: started_ps, delivered_ps, completed_ps, status. A time is -1 as
        long as it has not come."""
        count = len(self._graph.size_bytes)
        memory = ffi.buffer(lib.flow_model_records(self._model), count * _RECORD.itemsize)
        return np.frombuffer(memory, _RECORD).copy()

    @property
    def flow_bytes(self) -> Column:
        """The payload that each flow has transferred."""
        counts = np.zeros(len(self._graph.flows), np.int64)
        lib.flow_model_flow_bytes(self._model, ffi.from_buffer("int64_t[]", counts))
        return counts

    @property
    def link_bytes(self) -> Shares:
        """The bytes that each link has carried."""
        counts = np.zeros(len(self._network.capacity))
        lib.flow_model_link_bytes(self._model, ffi.from_buffer("double[]", counts))
        return counts

    @property
    def samples(self) -> FlowSamples:
        """The samples so far."""
        values, columns = ffi.new("const double **"), ffi.new("uint32_t *")
        rows = lib.flow_model_samples(self._model, values, columns)
        memory = ffi.buffer(values[0], rows * columns[0] * 8) if rows else b""
        table = np.frombuffer(memory, np.float64).reshape(rows, columns[0]).copy()
        links = len(self._network.capacity)
        return FlowSamples(
            time_ns=np.rint(table[:, 0] / 1000).astype(np.int64),
            link_bytes=table[:, 1 : 1 + links],
            flow_bytes=table[:, 1 + links :] if columns[0] > 1 + links else None,
        )

    def _sample(self, interval_ps: int, limit_ps: int) -> None:
        """Begins with the interval that the run would come to anyway."""
        flows = len(self._graph.flows)
        with_flows = flows <= _MOST_SAMPLED_FLOWS
        columns = 1 + len(self._network.capacity) + (flows if with_flows else 0)
        rows = min(_MOST_ROWS, max(_FEWEST_ROWS, _SAMPLE_BYTES // (8 * columns)))
        while interval_ps * rows <= min(self._shortest_ps, limit_ps):
            interval_ps *= 2
        lib.flow_model_sample(self._model, interval_ps, rows, with_flows)

    # ---- the core's structs ------------------------------------------------------------

    def _pointer(self, ctype: str, array: NDArray[Any]) -> Any:
        array = np.ascontiguousarray(array)
        pointer = ffi.from_buffer(ctype, array) if array.nbytes else ffi.new(ctype, 1)
        self._alive.append(pointer)
        return pointer

    def _network_struct(self) -> Any:
        network = self._network
        struct = ffi.new("struct flow_network *")
        self._alive.append(struct)
        struct.links, struct.routes = len(network.capacity), len(network.first) - 1
        struct.capacity = self._pointer("double[]", network.capacity)
        struct.first = self._pointer("uint32_t[]", network.first.astype(np.uint32))
        struct.link = self._pointer("uint32_t[]", network.link.astype(np.uint32))
        struct.share = self._pointer("double[]", network.share)
        struct.reverse_first = self._pointer("uint32_t[]", network.reverse_first.astype(np.uint32))
        struct.reverse_link = self._pointer("uint32_t[]", network.reverse_link.astype(np.uint32))
        struct.reverse_share = self._pointer("double[]", network.reverse_share)
        return struct

    def _workload_struct(self, shapes: Shapes) -> Any:
        graph = self._graph
        flows, queues = self._flows()
        operations = np.zeros(len(graph.size_bytes), _OPERATION)
        first, dependents = graph.dependents()
        operations["flow"] = graph.flow_of
        operations["shape"] = shapes.of
        operations["first_dependent"] = first[:-1]
        operations["dependent_count"] = np.diff(first)
        operations["not_before_ps"] = graph.not_before_ns * 1000
        operations["not_after_ps"] = graph.not_after_ns * 1000
        struct = ffi.new("struct flow_workload *")
        self._alive.append(struct)
        struct.operations = self._pointer("struct flow_operation[]", operations)
        struct.flows = self._pointer("struct flow_of_messages[]", flows)
        struct.shapes = self._pointer(
            "struct flow_shape[]", np.array(list(map(tuple, shapes.shapes)), _SHAPE)
        )
        struct.dependents = self._pointer("uint32_t[]", dependents.astype(np.uint32))
        struct.operation_count, struct.flow_count = len(operations), len(flows)
        struct.queue_count, struct.device_count = queues, max(1, len(graph.devices))
        return struct

    def _flows(self) -> tuple[NDArray[np.void], int]:
        """The flows, and the number of their queues: one for each direction of a connection, and
        one for each that the answers to READs take."""
        graph, columns = self._graph, self._graph.columns
        rows = np.zeros(len(graph.flows), _FLOW)
        rows["route"] = self._network.route_of_flow
        rows["host"], rows["far"] = columns.src, columns.dst
        if graph.devices:
            rows["device"] = [graph.devices.get(flow.device or "", 0) for flow in graph.flows]
        sends = np.flatnonzero(columns.where(lambda verb: verb is not Verb.COMPUTE))
        key = (columns.connection * len(columns.hosts) + columns.src) * 2
        key += columns.where(lambda verb: verb.fetches)
        _, queue = np.unique(key[sends], return_inverse=True)
        rows["queue"][sends] = queue.reshape(-1)
        return rows, 1 + int(queue.max(initial=0))


def _shortest_ps(graph: OperationGraph, network: Network, shapes: Shapes) -> float:
    """A time that the workload takes at least: what its busiest link must carry. Nothing of it may
    be skipped, else 0."""
    if graph.not_after_ns.any():
        return 0.0
    wire = np.array([shape.wire_bytes for shape in shapes.shapes])[shapes.of]
    route = network.route_of_flow[graph.flow_of]
    sent = np.bincount(route[route >= 0], wire[route >= 0], len(network.first) - 1)
    each = np.repeat(sent, np.diff(network.first)) * network.share
    return float(
        (np.bincount(network.link, each, len(network.capacity)) / network.capacity).max(initial=0)
    )
