"""The figures that a report derives from one run. Text, page and plots read them from here.

Nothing here is printed. `None` means that there is no such figure, because a flow never
finished, or because the fabric has no such thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from emu.measure.binning import growth
from emu.measure.bound import Bound, Paths, batches_of, fabric_of
from emu.measure.counter_table import NIC, PORT, numbered
from emu.measure.fct import FctSlowdown, fct_slowdowns
from emu.measure.ios import IoFigures, io_figures
from emu.measure.prompts import PromptFigures, prompt_figures
from emu.measure.recording import Recording, Series
from emu.measure.records import FlowRecord
from emu.measure.requests import Latency
from emu.report.summary import Summary, summarise
from emu.report.verdict import CheckResult, check_results
from emu.spec.model import Spec
from emu.spec.traffic.entry import MessageEntry, TrafficEntry
from emu.spec.traffic.job import JobEntry
from emu.spec.traffic.patterns import PingPong
from topologies.graph import Port, Topology

T = TypeVar("T")

XMIT_WAIT = "PortXmitWait"
"""InfiniBand's port counter of ticks in which the port had data to send, and no credit."""
PKEY_VIOLATIONS = "rx_pkey_violations"
"""The NIC counter of packets whose P_Key does not match that of their queue pair."""


@dataclass(frozen=True)
class PortLoad:
    """What the sending port did in one direction of a cable, as shares of the time from 0 to 1."""

    utilisation: float
    waiting: float | None
    """The share of time in which pause frames or missing credit held the port back; None: the model
    does not know it."""


@dataclass(frozen=True)
class RunFacts:
    """One run with its spec, and the figures that follow. `name` is its name in the report."""

    name: str
    recording: Recording
    spec: Spec
    topology: Topology

    @cached_property
    def summary(self) -> Summary:
        return summarise(self.recording)

    @cached_property
    def checks(self) -> tuple[CheckResult, ...]:
        return check_results(self.spec.verify, self.recording)

    @property
    def conclusive(self) -> bool:
        """Whether the machine kept up with the schedule. Only then are the figures results."""
        return self.recording.fidelity.verdict == "ok"

    @property
    def has_packets(self) -> bool:
        """Whether the run's model knows packets, and what happens to them."""
        return self.recording.has_packets

    @cached_property
    def _computed(self) -> dict[Callable[[RunFacts], Any], Any]:
        return {}

    def once(self, compute: Callable[[RunFacts], T]) -> T:
        """The result of a function of this run, which is called once at most."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        return cast(T, self._computed[compute])

    @cached_property
    def bound(self) -> Bound | None:
        workload = self.spec.workload()
        certain = (
            f for f in self.spec.fabric_flows(workload) if f.traffic not in workload.cut_short
        )
        return self.paths.last_finish_bound(batches_of(workload, certain))

    @cached_property
    def paths(self) -> Paths:
        """The paths through the run's fabric."""
        return Paths(self.topology, fabric_of(self.spec, self.topology))

    @property
    def flows(self) -> tuple[FlowRecord, ...]:
        return self.recording.flows

    @cached_property
    def latencies(self) -> tuple[Latency, ...]:
        """Latencies of entries whose flows have several requests. For the other entries, the flows
        give them; for storage, its I/Os; for inference, its prompts."""
        every = (Latency(**row) for row in self.summary["latencies"])
        return tuple(
            latency
            for latency in every
            if latency.requests > len(self.traffic[latency.traffic])
            and latency.traffic not in self.storage
            and latency.traffic not in {own.traffic for own in self.prompts}
        )

    @cached_property
    def ios(self) -> tuple[IoFigures, ...]:
        """Figures of the reads and of the writes of each storage entry."""
        return io_figures(self.recording.requests)

    @cached_property
    def prompts(self) -> tuple[PromptFigures, ...]:
        """Figures of the prompts of each inference entry."""
        return prompt_figures(self.recording.requests)

    @cached_property
    def storage(self) -> frozenset[str]:
        """Names of the storage entries. Some of their flows carry data and others commands."""
        return frozenset(figures.latency.traffic for figures in self.ios)

    @cached_property
    def fct_slowdowns(self) -> tuple[FctSlowdown, ...]:
        """The FCT slowdowns of each background load."""
        return fct_slowdowns(self.recording.requests)

    @property
    def unfinished(self) -> tuple[FlowRecord, ...]:
        return tuple(flow for flow in self.flows if not flow.completed)

    @cached_property
    def senders(self) -> tuple[str, ...]:
        """Hosts that send payload, which congestion control can slow down."""
        return tuple(dict.fromkeys(flow.bytes_from for flow in self.flows))

    @cached_property
    def gave_up(self) -> frozenset[str]:
        """Names of the flows whose queue pair went to the error state."""
        return frozenset(qp.flow for qp in self.recording.failed_queue_pairs)

    @cached_property
    def last_finish_ns(self) -> int | None:
        """The time at which the last flow finished; None if a flow is unfinished."""
        return last_finish_ns(self.flows)

    @property
    def over_bound(self) -> float | None:
        """How much later than the bound the last flow finished: 0.02 is two per cent."""
        if self.last_finish_ns is None or self.bound is None or self.bound.last_finish_ns == 0:
            return None
        return self.last_finish_ns / self.bound.last_finish_ns - 1

    @cached_property
    def traffic(self) -> dict[str, tuple[FlowRecord, ...]]:
        """Name of an entry of the spec's `traffic:` -> its flows."""
        flows: dict[str, list[FlowRecord]] = {}
        for flow in self.flows:
            flows.setdefault(flow.traffic, []).append(flow)
        return {name: tuple(own) for name, own in flows.items()}

    @cached_property
    def entries(self) -> dict[str, TrafficEntry]:
        """The entries of the spec's `traffic:`, by name."""
        return {entry.name: entry for entry in self.spec.traffic}

    def asked_priority(self, flow: FlowRecord) -> int | None:
        """The priority or service level that the flow's entry sets; None for the NIC's own."""
        entry = self.entries.get(flow.traffic)
        return entry.priority if entry else None

    def sends_without_gaps(self, flow: FlowRecord) -> bool:
        """Whether the flow always has something to send until it ends, and resends lost packets.
        Paced traffic, ping-pong, jobs and storage have gaps."""
        entry = self.entries.get(flow.traffic)
        return (
            isinstance(entry, MessageEntry)
            and not isinstance(entry, JobEntry | PingPong)
            and not entry.every_ps
            and entry.transport == "rc"
            and flow.is_rdma
        )

    def priority_of(self, flow: FlowRecord) -> int:
        """The RoCE priority of the flow's payload, by the map of the host that sends it."""
        return self.spec.priority(flow.bytes_from, self.asked_priority(flow))

    @cached_property
    def sampled(self) -> dict[str, int]:
        """Each sampled port's column in the series."""
        return {name: column for column, name in enumerate(self.recording.series.ports)}

    @cached_property
    def sampled_flows(self) -> dict[str, int]:
        """Each sampled flow's column in the series; empty for a run without samples."""
        series = self.recording.series
        names = series.flows if len(series.time_ns) else ()
        return {name: column for column, name in enumerate(names)}

    def columns(self, ports: Iterable[Port]) -> list[int] | None:
        """These ports' columns in the series; None where one was not sampled."""
        names = [self.topology.port_name[port] for port in ports]
        known = [self.sampled[name] for name in names if name in self.sampled]
        return known if len(known) == len(names) else None

    def waited_ns(self, columns: Sequence[int], start_ns: int, end_ns: int) -> NDArray[np.float64]:
        """How long flow control held each of these ports back in a window."""
        series = self.recording.series
        paused = growth(series.time_ns, series.paused_ns, start_ns, end_ns, columns)
        waited: NDArray[np.float64] = paused + growth(
            series.time_ns, series.credit_wait_ns, start_ns, end_ns, columns
        )
        return waited

    def median_goodput_bps(self, traffic: str) -> float:
        """The median goodput of an entry's flows. For unfinished flows, it covers the observed
        time."""
        return median(flow.goodput_bps for flow in self.traffic[traffic])

    def unfinished_of(self, traffic: str) -> int:
        """The number of an entry's unfinished flows."""
        return sum(not flow.completed for flow in self.traffic[traffic])

    def total(self, counter: str) -> int:
        return self.summary["totals"].get(counter, 0)

    @property
    def drops(self) -> int:
        """Packets that switches dropped for any reason other than an injected fault."""
        return sum(self.total(f"drops_{why}") for why in ("lossless", "lossy", "watchdog", "other"))

    @property
    def dropped_by_faults(self) -> int:
        """Packets that faults of the spec lost, on cables and with links."""
        return self.total("drops_fault")

    @property
    def dropped_by_hosts(self) -> int:
        """Packets that NICs dropped because they were damaged or the NIC had no buffer for them."""
        hosts = self.recording.hosts.values()
        return sum(own.get(row.name, 0) for own in hosts for row in NIC.drops())

    @cached_property
    def port_drops(self) -> dict[str, int]:
        """Packets that each port, or a fault on its cable, dropped. Ports without drops are left
        out."""
        framing = self.recording.fabric_kind.framing
        counters = numbered(PORT.public_drops(framing, PORT.drops()), framing)
        drops = {
            name: sum(own.get(counter, 0) for counter in counters)
            for name, own in self.recording.ports.items()
        }
        for fault in self.recording.faults:
            if fault.kind == "loss":
                drops[fault.place] = drops.get(fault.place, 0) + fault.packets_dropped
        return {name: count for name, count in drops.items() if count}

    @cached_property
    def refusals(self) -> dict[str, int]:
        """Hosts that dropped packets because of their P_Keys -> how many packets."""
        counts = {
            host: counters.get(PKEY_VIOLATIONS, 0)
            for host, counters in self.recording.hosts.items()
        }
        return {host: count for host, count in counts.items() if count}

    @property
    def xmit_wait(self) -> int:
        """The sum of PortXmitWait over all ports, including those of hosts."""
        everywhere = (*self.recording.ports.values(), *self.recording.hosts.values())
        return sum(counters.get(XMIT_WAIT, 0) for counters in everywhere)

    @cached_property
    def port_waiting_ns(self) -> dict[str, int]:
        """Sampled port -> how long flow control held data back; empty if the model does not know
        it."""
        series = self.recording.series
        if not self.has_packets:
            return {}
        total = waiting_ns(series)[-1:].sum(axis=0)
        return {name: int(ns) for name, ns in zip(series.ports, total, strict=True)}

    @property
    def uses_credits(self) -> bool:
        return self.recording.fabric_kind.uses_credits

    @cached_property
    def window_ns(self) -> tuple[int, int]:
        """From the first start to the last finish. If a flow is unfinished, the window ends with
        the last sample in which bytes were delivered or a port was held back. It then includes a
        deadlock, but not a timer that runs after everything else has ended."""
        start = min((flow.start_ns for flow in self.flows), default=0)
        end = self.last_finish_ns
        if end is None:
            end = max(self._last_change_ns, *(flow.end_ns or 0 for flow in self.flows), start)
        return start, max(end, start + 1)

    @property
    def _last_change_ns(self) -> int:
        """The last time at which a flow delivered bytes or a port was held back."""
        series, last = self.recording.series, 0
        for counts in (series.flow_bytes, series.paused_ns, series.credit_wait_ns):
            changed = np.flatnonzero((counts[:-1] != counts[-1:]).any(axis=1))
            last = max(last, int(changed[-1]) + 1 if len(changed) else 0)
        return int(series.time_ns[last]) if len(series.time_ns) else 0

    @cached_property
    def port_load(self) -> dict[str, PortLoad]:
        """Sampled port -> its load over the window."""
        series, (start, end) = self.recording.series, self.window_ns
        sent_bytes = growth(series.time_ns, series.tx_bytes, start, end)
        waiting: list[float | None] = [None] * len(series.ports)
        if self.has_packets:
            waited_ns = growth(series.time_ns, waiting_ns(series), start, end)
            waiting = [min(1.0, float(waited) / (end - start)) for waited in waited_ns]
        return {
            name: PortLoad(
                utilisation=min(1.0, float(sent) * 8e9 / self._rate_bps(name) / (end - start)),
                waiting=share,
            )
            for name, sent, share in zip(series.ports, sent_bytes, waiting, strict=True)
        }

    def _rate_bps(self, port_name: str) -> int:
        return self.topology.cable[self.topology.port_named[port_name]].rate_bps


def last_finish_ns(flows: Iterable[FlowRecord]) -> int | None:
    """The time at which all flows had finished; None if one is unfinished or there are none."""
    ends = [flow.end_ns if flow.completed else None for flow in flows]
    return max((end for end in ends if end is not None), default=None) if None not in ends else None


def waiting_ns(series: Series) -> NDArray[np.int64]:
    """(n, p): the time so far in which pauses or missing credit held data back."""
    return series.paused_ns + series.credit_wait_ns
