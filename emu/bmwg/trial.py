"""A trial: one run of the spec, and the runs that some KPIs compare it with.

    run              the spec as it is
    alone            each entry of `traffic:` without the others (interference)
    without_faults   the spec without its lost links (failover)

All of them have the same seed. The time of a trial is from the first start of anything to the last
finish, or to the end of the run if a flow is unfinished: its counters go on to count. Rates are
means over this time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from emu.measure.counter_table import CLASSES
from emu.measure.records import Counters, FlowRecord, JobRecord, StepRecord
from emu.report.run_view import RunFacts

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Trial:
    """One iteration of the benchmark."""

    run: RunFacts
    alone: Mapping[str, RunFacts] = field(default_factory=dict)
    """By the name of the entry; empty if interference is not measured."""
    without_faults: RunFacts | None = None

    @property
    def runs(self) -> tuple[RunFacts, ...]:
        """All runs of the trial."""
        others = (*self.alone.values(), self.without_faults)
        return (self.run, *(run for run in others if run is not None))

    @cached_property
    def window_ns(self) -> tuple[int, int]:
        """Start and end. A step may begin with computation, before the first message."""
        run = self.run
        starts = [work.start_ns for work in works(run) if work.start_ns is not None]
        ends = [work.end_ns for work in works(run) if work.end_ns is not None]
        ends += [flow.observed_until_ns for flow in run.unfinished if flow.observed_until_ns]
        start, end = run.window_ns
        return min(start, *starts, start), max(end, *ends, end)

    @property
    def seconds(self) -> float:
        """Emulated time of the trial."""
        start, end = self.window_ns
        return (end - start) / NS_PER_S

    @cached_property
    def ports(self) -> dict[str, Counters]:
        """The counters of every port, of switches and of hosts, by the port's name."""
        topology, recording = self.run.topology, self.run.recording
        of_hosts = {
            topology.port_name[topology.ports[host][0]]: own
            for host, own in recording.hosts.items()
        }
        return recording.ports | of_hosts

    @property
    def classes(self) -> range:
        """The priorities of Ethernet, or the virtual lanes of InfiniBand."""
        return range(CLASSES[self.run.recording.fabric_kind.framing])

    def total(self, *counters: str) -> int:
        """The sum of these counters over all ports."""
        return sum(own.get(counter, 0) for own in self.ports.values() for counter in counters)

    def at_hosts(self, counter: str) -> int:
        """The sum of a NIC's counter over all hosts."""
        return sum(own.get(counter, 0) for own in self.run.recording.hosts.values())

    def fabric_flows(self) -> Iterator[FlowRecord]:
        """The flows that cross the fabric by RDMA; those inside of servers do not."""
        spec = self.run.spec
        for flow in self.run.flows:
            if flow.is_rdma and not spec.in_one_server(flow.src, flow.dst):
                yield flow


def works(run: RunFacts) -> tuple[JobRecord | StepRecord, ...]:
    """The jobs of a run: collectives and steps."""
    return (*run.recording.jobs, *run.recording.steps)
