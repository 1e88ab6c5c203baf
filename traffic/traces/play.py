"""The graph of operations that plays a trace.

A trace has a step for each end of a message, a graph of operations has one operation. A receive is
not an operation: steps that wait for it wait for the message.

    rank 0   calc ──▶ send to 1                       work ──▶ message
    rank 1            recv from 0 ──▶ calc                        └──▶ work

The n-th send between two ranks with a given tag belongs to the n-th receive between them with this
tag. A send does not wait until the receive is posted, because messages are WRITEs into memory that
already exists. Collectives are expanded into their messages (traffic/collectives), which carry
bytes but no sums. The n-th collectives of a process group's ranks are one and the same collective.
A receive has begun when it is posted, long before its message arrives. Work of a rank waits only
for the steps that the trace names, not for other work of the rank.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traffic.collectives.channels import by_number
from traffic.collectives.collective import ALGORITHMS, Cut, add_collective, channels_for
from traffic.collectives.schedule import NOBODY, Schedule, Waits
from traffic.graph import LONGEST_MESSAGE_BYTES, OperationGraph
from traffic.job import Job, Kind
from traffic.traces.trace import Does, Group, Step, Trace, TraceError


@dataclass(frozen=True)
class Expansion:
    """How a trace's collectives become messages. Only all-reduce has a choice of algorithms."""

    all_reduce: str = ALGORITHMS[Kind.ALL_REDUCE][0]
    chunk_bytes: int | None = None
    """The longest message; None: the algorithm decides."""
    channels: int | None = None
    """The number of channels; None: one for each NIC of a server."""
    server_of: Sequence[int] = ()
    """The number of each rank's server; empty: each rank has a server of its own."""

    def add(
        self, schedule: Schedule, name: str, first: Step, ranks: Sequence[int], after: Waits
    ) -> Waits:
        """Adds the messages of one collective; `first` is the step of its first rank."""
        kind = first.collective
        assert kind is not None
        own = self.all_reduce if kind is Kind.ALL_REDUCE else ALGORITHMS[kind][0]
        job = Job(name, kind, own, tuple(map(str, ranks)), first.size_bytes)
        servers = by_number([self.server_of[rank] for rank in ranks] if self.server_of else ranks)
        channels = self.channels or channels_for(job, servers)
        cut = Cut(self.chunk_bytes or LONGEST_MESSAGE_BYTES, channels)
        try:
            return add_collective(
                schedule, job, np.array(ranks), cut=cut, servers=servers, after=after
            )
        except ValueError as error:
            raise TraceError(first.where, f"{error}; choose another algorithm") from None


def graph_of(
    name: str,
    trace: Trace,
    hosts: Sequence[str],
    *,
    expansion: Expansion = Expansion(),
    start_ns: int = 0,
    priority: int | None = None,
) -> OperationGraph:
    """The operations of a trace; rank r is the r-th of `hosts`.

    Raises TraceError if the trace cannot be played: a receive without a send, a send without a
    receive, or steps that wait for each other in a cycle.
    """
    schedule = Schedule(buffers=False)
    _Units(name, trace, expansion).play(schedule)
    return schedule.graph(name, hosts, start_ns=start_ns, priority=priority)


class _Units:
    """The units that are played: one step, or the steps of all ranks in one collective."""

    def __init__(self, name: str, trace: Trace, expansion: Expansion) -> None:
        self._name, self._trace, self._expansion = name, trace, expansion
        self._send_of = _matched(trace.steps)
        self._unit_of: dict[int, tuple[int, ...]] = {
            number: (number,) for number in range(len(trace.steps))
        }
        for members in _collectives(trace):
            self._unit_of |= dict.fromkeys(members, members)
        self._over: dict[int, tuple[int, ...]] = {}
        """Step -> the operations that later steps wait for."""
        self._awaited: dict[int, tuple[int, ...]] = {}
        """Step -> the operations that it waited for."""

    def play(self, schedule: Schedule) -> None:
        """Begins each step and ends each unit, after everything that it waits for."""
        count = len(self._trace.steps)
        for moment in self._in_order():
            if moment < count:
                self._awaited[moment] = self._waits(self._trace.steps[moment])
            else:
                self._end(self._unit_of[moment - count], schedule)

    def _in_order(self) -> Iterator[int]:
        """The numbers of events in order. Number n: step n begins. Number n plus the count of all
        steps: the unit whose first step is n ends. A receive ends when its message has arrived, a
        collective when all ranks have begun."""
        import networkx as nx  # takes long to import, and most workloads are no traces

        count = len(self._trace.steps)
        end_of = [count + self._unit_of[number][0] for number in range(count)]
        graph = nx.DiGraph()
        for number, step in enumerate(self._trace.steps):
            graph.add_edge(number, end_of[number])
            graph.add_edges_from((end_of[earlier], number) for earlier in step.after)
            graph.add_edges_from((other, number) for other in step.with_start_of)
            if step.does is Does.RECV:
                graph.add_edge(end_of[self._send_of[number]], end_of[number])
        try:
            yield from nx.lexicographical_topological_sort(graph)
        except nx.NetworkXUnfeasible:
            cycle = dict.fromkeys(moment % count for moment, _ in nx.find_cycle(graph))
            steps = ", ".join(self._trace.steps[number].where for number in list(cycle)[:6])
            raise TraceError(
                steps, "these steps wait for each other in a cycle; take one dependency out"
            ) from None

    def _end(self, unit: tuple[int, ...], schedule: Schedule) -> None:
        if self._trace.steps[unit[0]].does is Does.COLLECTIVE:
            self._play_collective(unit, schedule)
        else:
            self._play_step(unit[0], schedule)

    def _waits(self, step: Step) -> tuple[int, ...]:
        over = (self._over[earlier] for earlier in step.after)
        begun = (self._awaited[earlier] for earlier in step.with_start_of)
        return tuple(dict.fromkeys(id for ids in (*over, *begun) for id in ids))

    def _play_step(self, number: int, schedule: Schedule) -> None:
        step, awaited = self._trace.steps[number], self._awaited[number]
        after = [np.array([id]) for id in awaited]
        if step.does is Does.RECV:
            self._over[number] = (*self._over[self._send_of[number]], *awaited)
        elif step.does is Does.SEND:
            sent = schedule.send(step.rank, step.peer, step.size_bytes, after=after)
            self._over[number] = tuple(sent.tolist())
        else:
            worked = schedule.work(step.rank, step.lasts_ns, after=after)
            self._over[number] = tuple(worked.tolist())

    def _play_collective(self, unit: tuple[int, ...], schedule: Schedule) -> None:
        steps = [self._trace.steps[number] for number in unit]
        ranks = [step.rank for step in steps]
        awaited = [self._awaited[number] for number in unit]
        waits = [np.array(column) for column in zip(*_padded(awaited), strict=True)]
        over: Waits = waits
        if len(ranks) > 1:
            over = self._expansion.add(schedule, self._name, steps[0], ranks, waits)
        for place, number in enumerate(unit):
            own = (int(np.broadcast_to(column, len(unit))[place]) for column in over)
            self._over[number] = tuple(id for id in own if id != NOBODY)


def _padded(rows: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    longest = max(map(len, rows))
    return [row + (NOBODY,) * (longest - len(row)) for row in rows]


def _matched(steps: Sequence[Step]) -> dict[int, int]:
    """Each receive -> its send. Raises TraceError if one of the two is missing."""
    sends: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    receives: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for number, step in enumerate(steps):
        if step.does is Does.SEND:
            sends[step.rank, step.peer, step.tag].append(number)
        elif step.does is Does.RECV:
            receives[step.peer, step.rank, step.tag].append(number)
    for between in {**sends, **receives}:
        _check_pairs(steps, between, sends[between], receives[between])
    return {
        receive: send
        for between, own in receives.items()
        for receive, send in zip(own, sends[between], strict=True)
    }


def _check_pairs(
    steps: Sequence[Step],
    between: tuple[int, int, int],
    sends: Sequence[int],
    receives: Sequence[int],
) -> None:
    src, dst, tag = between
    if len(sends) > len(receives):
        where, missing = steps[sends[len(receives)]].where, f"rank {dst} never receives this"
    elif len(receives) > len(sends):
        where, missing = steps[receives[len(sends)]].where, f"rank {src} never sends this"
    else:
        for send, receive in zip(sends, receives, strict=True):
            _check_sizes(steps[send], steps[receive])
        return
    raise TraceError(where, f"{missing} (tag {tag}); add its other end, or take it out")


def _check_sizes(send: Step, receive: Step) -> None:
    if send.size_bytes > receive.size_bytes:
        raise TraceError(
            receive.where,
            f"has room for {receive.size_bytes} bytes, and {send.where} sends "
            f"{send.size_bytes}; make both the same",
        )


def _collectives(trace: Trace) -> Iterator[tuple[int, ...]]:
    """The steps of each collective: one of each of its ranks, in their order."""
    of_group: dict[Group, dict[int, list[int]]] = {}
    for number, step in enumerate(trace.steps):
        if step.group is not None:
            own = of_group.setdefault(step.group, {rank: [] for rank in step.group.ranks})
            own[step.rank].append(number)
    for own in of_group.values():
        yield from _in_turn(trace.steps, own)


def _in_turn(steps: Sequence[Step], of_rank: dict[int, list[int]]) -> Iterator[tuple[int, ...]]:
    """From each rank's steps of a group: the first of every rank, then the second of every rank."""
    longest = max(of_rank.values(), key=len)
    for rank, own in of_rank.items():
        if len(own) < len(longest):
            raise TraceError(
                steps[longest[len(own)]].where,
                f"rank {rank} does not take part in this collective; let all ranks of its process "
                "group take part, or none",
            )
    for members in zip(*of_rank.values(), strict=True):
        _check_members([steps[number] for number in members])
        yield members


def _check_members(steps: Iterable[Step]) -> None:
    first, *others = steps
    for step in others:
        if (step.collective, step.size_bytes) != (first.collective, first.size_bytes):
            raise TraceError(
                step.where,
                f"is {step.collective} of {step.size_bytes} bytes, but rank {first.rank}'s is "
                f"{first.collective} of {first.size_bytes} ({first.where}); make them the same",
            )
