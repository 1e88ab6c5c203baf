"""Workloads from traces that others have written: GOAL's text, Chakra's execution traces."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from emu.spec.traffic.entry import AmongEntry
from traffic.graph import OperationGraph
from traffic.patterns import Pairs
from traffic.traces.chakra import read_chakra
from traffic.traces.goal import read_goal
from traffic.traces.trace import Trace, TraceError, graph_of


class TraceEntry(AmongEntry):
    """The ranks of a trace do what it says, the first of `among` being rank 0."""

    pattern: Literal["trace"] = Field(description="Pattern of the traffic.")
    format: Literal["goal", "chakra"] = Field(
        description="goal: text of GOAL, as LogGOPSim has it; chakra: execution traces in "
        "protobuf, a file for each rank."
    )
    file: str = Field(
        description="The file, seen from the spec's folder; of Chakra the name up to the rank: "
        "job for job.0.et, job.1.et and so on."
    )

    @model_validator(mode="after")
    def _can_be_played(self) -> Self:
        ranks = _trace(self.format, self.file).ranks
        if ranks != len(self.among):
            raise ValueError(
                f"the trace has {ranks} ranks, and among names {len(self.among)} hosts; name as "
                "many as there are ranks"
            )
        _graph(self)
        return self

    @property
    def flow_count(self) -> int:
        return len(self.graph(0).flows)

    @property
    def message_count(self) -> int:
        return len(self.graph(0).operations)

    @property
    def total_bytes(self) -> int:
        return self.graph(0).total_bytes

    def pairs(self, seed: int) -> Pairs:
        return [(flow.src, flow.dst) for flow in self.graph(seed).flows]

    def ends(self, seed: int) -> dict[str, tuple[str, str]]:
        return {flow.name: (flow.src, flow.dst) for flow in self.graph(seed).flows}

    def graph(self, seed: int) -> OperationGraph:
        return _graph(self)


@lru_cache(maxsize=8)
def _graph(entry: TraceEntry) -> OperationGraph:
    trace = _trace(entry.format, entry.file)
    return graph_of(
        entry.name, trace, entry.among, start_ns=entry.start_ns, priority=entry.priority
    )


@lru_cache(maxsize=8)
def _trace(kind: str, file: str) -> Trace:
    path = Path(file)
    try:
        if kind == "chakra":
            return read_chakra(path)
        return read_goal(path.read_text("utf-8"), path.name)
    except OSError as error:
        raise TraceError(file, f"cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise TraceError(file, "is no text; GOAL's binary form is not read here") from None
