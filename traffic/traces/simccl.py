"""SimCCL's flow file: the point-to-point flows that NCCL's collectives are made of.

    collective,op,data_size,algorithm,protocol,channel_id,flow_id,src,dest,flow_size,
    chunk_id,chunk_count,conn_type,parent_flow_ids,prev_flow_ids

SimCCL (part of SimAI) writes `ncclFlowModel_detailed_flows.csv`, a line for each flow. These
columns are read, by their names, so that the file of an older version with fewer columns is read,
too:

    collective         a name; flows of a collective follow each other in the file, rank by rank
    flow_id            a number, unique in the file
    src, dest          ranks
    flow_size          bytes
    conn_type          RING, PTP, PAT, ...: what made the flow. NVLS is refused, see below
    parent_flow_ids    flows whose data this one sends on, with `;` between them

A flow starts when its parents have arrived, which must end at its source. The file has no times and
no computation. A rank begins a collective when it is through with the one before it in the file,
as on one stream of a GPU.

Despite its name, `prev_flow_ids` has ranks, not flows: those whose data the source waits for, which
are the sources of the parents (`SingleFlow.prev` in SimCCL's MockNcclGroup.cc, version 2.30). It
adds nothing to the parents, so it is not read. `conn_type` names no kind of link, either: whether a
flow crosses NVLink or the fabric follows from the servers of its ranks (hosts.gpus).

NVLS sums up inside of NVSwitch, whose ports are further ranks in the file. There are no hosts for
them, so such a file is refused.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from traffic.traces.trace import Does, Step, Trace, TraceError, whole_number

_COLUMNS = (
    "collective",
    "flow_id",
    "src",
    "dest",
    "flow_size",
    "conn_type",
    "parent_flow_ids",
)
_MOST_RANKS = 1_000_000


@dataclass(frozen=True)
class _Flow:
    """A line of the file."""

    where: str
    collective: str
    number: int
    src: int
    dst: int
    size_bytes: int
    parents: tuple[int, ...]


def read_simccl(text: str, source: str) -> Trace:
    """The trace in a flow file; `source` is its name in error messages. Raises TraceError."""
    flows = list(_flows(text, source))
    if not flows:
        raise TraceError(source, "has no flows; let SimCCL write it again")
    known: dict[int, _Flow] = {}
    for flow in flows:
        if known.setdefault(flow.number, flow) is not flow:
            raise TraceError(flow.where, f"flow_id {flow.number} occurs twice; rename one")
    for flow in flows:
        _check_parents(flow, known)
    ranks = 1 + max(max(flow.src, flow.dst) for flow in flows)
    return Trace(ranks, tuple(_Steps(flows).all))


def _flows(text: str, source: str) -> Iterator[_Flow]:
    reader = csv.DictReader(text.splitlines())
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise TraceError(
            f"{source}:1",
            f"has no column {', '.join(missing)}; the first line of SimCCL's flow file names its "
            "columns",
        )
    try:
        for row in reader:
            yield _flow(row, f"{source}:{reader.line_num}")
    except csv.Error as error:
        raise TraceError(f"{source}:{reader.line_num}", f"is not CSV ({error})") from None


def _flow(row: dict[str, str | None], where: str) -> _Flow:
    if None in row.values():
        raise TraceError(where, "has fewer cells than the first line; let SimCCL write it again")
    cells = {name: str(row[name]).strip() for name in _COLUMNS}
    if cells["conn_type"].startswith("NVLS"):
        raise TraceError(
            where,
            "is NVLS, which sums up inside of NVSwitch; let SimCCL write the file with "
            "AS_NVLS_ENABLE=0",
        )
    parents = [part for part in cells["parent_flow_ids"].split(";") if part]
    flow = _Flow(
        where=where,
        collective=cells["collective"],
        number=_number(where, "flow_id", cells["flow_id"]),
        src=_number(where, "src", cells["src"], _MOST_RANKS),
        dst=_number(where, "dest", cells["dest"], _MOST_RANKS),
        size_bytes=_number(where, "flow_size", cells["flow_size"]),
        parents=tuple(_number(where, "parent_flow_ids", part) for part in parents),
    )
    if flow.src == flow.dst:
        raise TraceError(where, f"is a flow of rank {flow.src} to itself; take it out")
    return flow


def _number(where: str, column: str, text: str, most: int | None = None) -> int:
    try:
        number = whole_number(text)
    except ValueError:
        raise TraceError(where, f"{column} has no whole number; write it again") from None
    if number < 0 or (most is not None and number > most):
        raise TraceError(where, f"{column} {number} is out of range, 0 to {most or 'any'}")
    return number


def _check_parents(flow: _Flow, known: dict[int, _Flow]) -> None:
    for number in flow.parents:
        if number not in known:
            raise TraceError(flow.where, f"waits for flow {number}, which is not in the file")
        parent = known[number]
        if parent.dst != flow.src:
            raise TraceError(
                flow.where,
                f"rank {flow.src} would send on flow {number}, which goes to rank {parent.dst} "
                f"({parent.where}); correct parent_flow_ids",
            )


class _Steps:
    """The steps of all flows: both ends of each, and where ranks go on to the next collective."""

    def __init__(self, flows: list[_Flow]) -> None:
        self.all: list[Step] = []
        self._receive_of: dict[int, int] = {}
        """Flow -> the step at which it arrives."""
        self._last: dict[int, list[int]] = {}
        """Rank -> its steps in the last collective that it took part in."""
        of_collective: dict[str, list[_Flow]] = defaultdict(list)
        for flow in flows:
            of_collective[flow.collective].append(flow)
        for own in of_collective.values():
            self._add_collective(own)

    def _add_collective(self, flows: list[_Flow]) -> None:
        begun = self._begin(flows)
        own: dict[int, list[int]] = defaultdict(list)
        for flow in flows:
            self._receive_of[flow.number] = self._add(
                Step(
                    flow.where,
                    flow.dst,
                    Does.RECV,
                    peer=flow.src,
                    tag=flow.number,
                    size_bytes=flow.size_bytes,
                )
            )
            own[flow.dst].append(self._receive_of[flow.number])
        for flow in flows:
            own[flow.src].append(self._add_send(flow, begun.get(flow.src)))
        self._last |= own

    def _begin(self, flows: list[_Flow]) -> dict[int, int]:
        """A step for each rank that was in a collective before: it is over when that one is."""
        ranks = dict.fromkeys(rank for flow in flows for rank in (flow.src, flow.dst))
        return {
            rank: self._add(Step(flows[0].where, rank, Does.CALC, after=tuple(self._last[rank])))
            for rank in ranks
            if rank in self._last
        }

    def _add_send(self, flow: _Flow, begun: int | None) -> int:
        after = tuple(self._receive_of[parent] for parent in flow.parents)
        return self._add(
            Step(
                flow.where,
                flow.src,
                Does.SEND,
                peer=flow.dst,
                tag=flow.number,
                size_bytes=flow.size_bytes,
                after=after if begun is None else (*after, begun),
            )
        )

    def _add(self, step: Step) -> int:
        self.all.append(step)
        return len(self.all) - 1
