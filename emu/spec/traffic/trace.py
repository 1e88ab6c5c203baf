"""Workloads from traces of other tools: GOAL, Chakra's execution traces, SimCCL's flow file."""

from __future__ import annotations

from errno import ENOENT
from glob import escape
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr

from emu.regular import read_regular
from emu.spec import references
from emu.spec.notes import note
from emu.spec.quantities import Integer, Size
from emu.spec.traffic.collectives import AllReduceAlgorithm
from emu.spec.traffic.job import JobEntry
from traffic.collectives.channels import MOST
from traffic.graph import OperationGraph
from traffic.job import FLOAT_BYTES
from traffic.traces.goal import read_goal
from traffic.traces.goal_binary import is_goal_binary, read_goal_binary
from traffic.traces.groups import read_groups
from traffic.traces.play import Expansion, graph_of
from traffic.traces.simccl import read_simccl
from traffic.traces.trace import LONGEST_BYTES, Trace, TraceError

_CHAKRA_ALONE = ("groups", "tflops", "algorithm", "chunk_bytes", "channels")
"""The fields that have no effect for other traces."""
_TITLES = {"goal": "GOAL", "chakra": "Chakra", "simccl": "SimCCL"}

_WRITER = {"goal": "txt2bin", "simccl": "SimCCL"}

Version = frozenset[tuple[str, int, int]]
"""The name, time of modification (ns) and size in bytes of each file."""


class TraceEntry(JobEntry):
    """The ranks replay a trace; the first host of `among` is rank 0."""

    pattern: Literal["trace"] = Field(description="Pattern of the traffic.")
    format: Literal["goal", "chakra", "simccl"] = Field(
        description="goal: GOAL as in LogGOPSim, its text or its binary form; chakra: execution "
        "traces in protobuf, a file for each rank; simccl: SimCCL's file of point-to-point flows, "
        "ncclFlowModel_detailed_flows.csv."
    )
    file: str = Field(
        description="The file, relative to the spec's folder; for Chakra, the name up to the rank: "
        "job for job.0.et, job.1.et and so on. Regular files of 64 MB each at most."
    )

    groups: str | None = Field(
        default=None,
        description="chakra: a file of the process groups that collectives name, as ASTRA-sim has "
        'it: {"0": [0, 1], "1": [2, 3]}. Groups in the trace itself take precedence.',
    )

    tflops: Integer | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="chakra: speed of a GPU, 10^12 floating-point operations a second. It "
        "gives a duration to work that has num_ops and no duration_micros.",
        json_schema_extra=note(unit="TFLOP/s"),
    )
    algorithm: AllReduceAlgorithm = Field(
        default="ring",
        description="chakra: how all-reduces are done, as in pattern: all-reduce. hierarchical "
        "takes servers from hosts.gpus.",
        json_schema_extra=note(
            why="NCCL's choice for large buffers on three servers and more",
            source=references.NCCL,
        ),
    )
    chunk_bytes: Size | None = Field(
        default=None,
        alias="chunk",
        ge=FLOAT_BYTES,
        description="chakra: the longest message of a collective. Unless given, the algorithm "
        "determines the length of messages.",
    )
    channels: Integer | None = Field(
        default=None,
        ge=1,
        le=MOST,
        description="chakra: channels of a collective, as in pattern: all-reduce.",
        json_schema_extra=note(unit="channels", source=references.NCCL),
    )

    _version: Version = PrivateAttr(default=frozenset())
    """The version of its files. Entries whose files differ are not equal."""

    def model_post_init(self, context: Any) -> None:
        self._version = _version_of(self.file, self.groups)

    def why_hosts_do_not_fit(self) -> str | None:
        if self.format != "chakra":
            for field in _CHAKRA_ALONE:
                if field in self.model_fields_set:
                    key = type(self).model_fields[field].alias or field
                    return (
                        f"{key} is for Chakra's traces, and has no effect for "
                        f"{_TITLES[self.format]}; leave it out"
                    )
        try:
            self.graph(0)
        except ValueError as error:
            return str(error)
        return None

    @property
    def flow_count(self) -> int:
        return 0 if self.why_hosts_do_not_fit() else len(self.graph(0).flows)

    @property
    def message_count(self) -> int:
        return 0 if self.why_hosts_do_not_fit() else len(self.graph(0).operations)

    @property
    def total_bytes(self) -> int:
        return self.graph(0).total_bytes

    def graph(self, seed: int) -> OperationGraph:
        """The graph is the same for every seed, because nothing is random."""
        return super().graph(0)

    def put_together(self, seed: int) -> OperationGraph:
        """Raises ValueError if the trace cannot be read, or does not suit these hosts."""
        trace = _read(self.format, self.file, self.groups, self.tflops)
        if trace.ranks != len(self.among):
            raise ValueError(
                f"the trace has {trace.ranks} ranks, but among names {len(self.among)} hosts; "
                "name as many as there are ranks"
            )
        return graph_of(
            self.name,
            trace,
            self.among,
            expansion=Expansion(self.algorithm, self.chunk_bytes, self.channels, self._server_of),
            start_ns=self.start_ns,
            priority=self.priority,
        )


def _version_of(file: str, groups: str | None) -> Version:
    """The times of modification and the sizes of all files whose name begins with `file`."""
    path = Path(file)
    try:
        ranks = path.parent.glob(escape(path.name) + "*")
        files = chain(ranks, [Path(groups)] if groups else [])
        return frozenset((str(f), f.stat().st_mtime_ns, f.stat().st_size) for f in files)
    except (OSError, ValueError):
        return frozenset()  # reading the file gives the reason


def _read(kind: str, file: str, groups: str | None, tflops: int | None) -> Trace:
    path = Path(file)
    try:
        if kind == "chakra":
            from traffic.traces.chakra import read_chakra  # protobuf, which few runs need

            return read_chakra(path, read_groups(Path(groups)) if groups else {}, tflops)
        data = read_regular(path, LONGEST_BYTES)
        if kind == "simccl":
            return read_simccl(data.decode("utf-8-sig"), path.name)
        if is_goal_binary(data):
            return read_goal_binary(data, path.name)
        return read_goal(data.decode("utf-8"), path.name)
    except OSError as error:
        name = Path(error.filename or file).name
        where = "; name it as seen from the spec's folder" if error.errno == ENOENT else ""
        raise TraceError(name, f"cannot be read ({error.strerror}){where}") from None
    except UnicodeDecodeError:
        what = "nor GOAL's binary form" if kind == "goal" else "so it is no flow file"
        raise TraceError(
            path.name,
            f"is not text, {what}; name another file, or let {_WRITER[kind]} write it again",
        ) from None
