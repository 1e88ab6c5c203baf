"""The recording of a run of the flow model: what it knows, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from emu.clocks import VIRTUAL
from emu.flow_model.limits import NOT_KNOWN, left_out, where_wrong
from emu.flow_model.network import Network
from emu.flow_model.routes import Column
from emu.flow_model.simulation import SKIPPED, SUCCESS, FlowSamples, Simulation
from emu.measure.fct import alone_ns
from emu.measure.recording import Recording, Series
from emu.measure.records import Fidelity, FlowRecord, JobRecord, StepRecord
from emu.measure.requests import UNFINISHED, Requests
from emu.models import FLOW
from emu.spec.scenario import Spec
from topologies.graph import Topology
from traffic.graph import OperationGraph
from traffic.verb import Verb

_PLANE = "none"
"""Nothing forwards packets."""


def recording_of(
    spec: Spec,
    topology: Topology,
    network: Network,
    simulation: Simulation,
    *,
    wall_seconds: float,
    notes: Iterable[str] = (),
) -> Recording:
    """The recording of a simulation of the spec's own workload."""
    graph = spec.workload()
    outcome = _Outcome(graph, simulation)
    requests = replace(outcome.requests(), alone_ns=alone_ns(spec, topology)).asked_for()
    return Recording(
        name=spec.name,
        fabric=spec.fabric,
        plane=_PLANE,
        clock=VIRTUAL.name,
        slowdown=1,
        seed=spec.seed,
        marker="none",
        flows=tuple(outcome.flows()),
        ports={},
        hosts={},
        totals={},
        series=_series(graph, network, simulation.samples, simulation),
        fidelity=Fidelity(),
        wall_seconds=wall_seconds,
        requests=requests,
        jobs=tuple(outcome.jobs()),
        steps=tuple(outcome.steps()),
        notes=tuple(notes),
        model=FLOW.name,
        not_known=(*NOT_KNOWN, *left_out(spec)),
        warnings=where_wrong(
            spec,
            graph,
            network,
            outcome.started_ps,
            outcome.ended_ps,
            simulation.link_bytes,
        ),
    )


class _Outcome:
    """What happened to a workload."""

    def __init__(self, graph: OperationGraph, simulation: Simulation) -> None:
        self._graph = graph
        self._records = simulation.records
        self._transferred = simulation.flow_bytes
        self._now_ns = simulation.progress().now_ps // 1000
        self._skipped = self._records["status"] == SKIPPED
        starts = graph.columns.first_operation
        started = np.where(self._records["started_ps"] < 0, _LATE, self._records["started_ps"])
        ended = np.where(self._skipped, -1, self._records["delivered_ps"])
        missing = ~self._skipped & (self._records["delivered_ps"] < 0)
        over = self._skipped | (self._records["status"] == SUCCESS)
        bytes_ = np.where(self._skipped, 0, graph.size_bytes)
        self.started_ps = _none_as(_each(np.minimum, started, starts), _LATE)
        """When the first operation of each flow started; -1: none did."""
        unfinished = _each(np.logical_or, missing, starts)
        self.ended_ps = np.where(unfinished, -1, _each(np.maximum, ended, starts))
        """When the last operation of each flow was delivered; -1: one was not."""
        self._completed = _each(np.logical_and, over, starts)
        self._bytes = _each(np.add, bytes_, starts)
        self._planned_ns = graph.not_before_ns[starts]

    def flows(self) -> Iterable[FlowRecord]:
        names = [verb.value for verb in self._graph.columns.verbs]
        columns = zip(
            self._graph.flows,
            map(names.__getitem__, self._graph.columns.verb.tolist()),
            self._bytes.tolist(),
            self.started_ps.tolist(),
            self.ended_ps.tolist(),
            self._completed.tolist(),
            self._transferred.tolist(),
            self._planned_ns.tolist(),
            strict=True,
        )
        for flow, verb, bytes_, started, ended, completed, transferred, planned_ns in columns:
            if flow.verb is Verb.COMPUTE:
                continue
            yield FlowRecord(
                name=flow.name,
                traffic=flow.traffic,
                src=flow.src,
                dst=flow.dst,
                op=verb,
                bytes=bytes_,
                start_ns=planned_ns if started < 0 else started // 1000,
                end_ns=None if ended < 0 else max(ended // 1000, planned_ns),
                retransmitted_packets=None,
                completed=bool(completed),
                delivered_bytes=transferred,
                observed_until_ns=self._now_ns,
            )

    def requests(self) -> Requests:
        graph, records = self._graph, self._records
        return Requests.of_graph(
            graph,
            start_ns=_in_ns(records["started_ps"][graph.begins]),
            end_ns=_in_ns(records["delivered_ps"][graph.ends]),
            skipped=self._skipped[graph.begins],
        )

    def jobs(self) -> Iterable[JobRecord]:
        for job in self._graph.jobs:
            yield JobRecord.of(job, self._span_ns(job.name), wrong=None)

    def steps(self) -> Iterable[StepRecord]:
        for step in self._graph.steps:
            start_ns, end_ns = self._span_ns(step.name)
            yield StepRecord(step.name, start_ns, end_ns, step.work_alone_ns, step.bytes_for)

    def _span_ns(self, traffic: str) -> tuple[int | None, int | None]:
        """When the first operation of an entry started, and when the last was delivered."""
        own = self._graph.columns.of_traffic(lambda name: name == traffic)
        started, ended = self.started_ps[own], self.ended_ps[own]
        begun = started[started >= 0]
        return (
            int(begun.min()) // 1000 if len(begun) else None,
            int(ended.max()) // 1000 if self._completed[own].all() and (ended >= 0).all() else None,
        )


_LATE = np.iinfo(np.int64).max


def _each(ufunc: np.ufunc, values: NDArray[np.generic], starts: Column) -> Column:
    """The values of each flow's operations, combined."""
    result: Column = ufunc.reduceat(values, starts) if len(starts) else np.zeros(0, np.int64)
    return result


def _none_as(values: Column, none: int) -> Column:
    return np.where(values == none, -1, values)


def _in_ns(time_ps: Column) -> Column:
    return np.where(time_ps < 0, UNFINISHED, time_ps // 1000)


def _series(
    graph: OperationGraph, network: Network, samples: FlowSamples, simulation: Simulation
) -> Series:
    """Samples of what cables carried and flows delivered, and a last row at the end."""
    end_ns = simulation.progress().now_ps // 1000
    before = samples.time_ns < end_ns
    time_ns = np.append(samples.time_ns[before], end_ns)
    link_bytes = np.vstack([samples.link_bytes[before], simulation.link_bytes])
    crossed = np.flatnonzero(network.link_of_port >= 0)
    tx_bytes = np.zeros((len(time_ns), len(network.ports)), np.int64)
    tx_bytes[:, crossed] = np.rint(link_bytes[:, network.link_of_port[crossed]])
    flows: tuple[str, ...] = ()
    flow_bytes = np.zeros((len(time_ns), 0), np.int64)
    if samples.flow_bytes is not None:
        messages = np.flatnonzero(graph.columns.where(lambda verb: verb is not Verb.COMPUTE))
        flows = tuple(flow.name for flow in graph.message_flows)
        every = np.vstack([samples.flow_bytes[before], simulation.flow_bytes])
        flow_bytes = np.rint(every[:, messages]).astype(np.int64)
    unknown = np.zeros((len(time_ns), 0), np.int64)
    return Series(
        time_ns=time_ns,
        ports=network.ports,
        queue_bytes=unknown,
        buffer_bytes=unknown,
        tx_bytes=tx_bytes,
        paused_ns=unknown,
        credit_wait_ns=unknown,
        flows=flows,
        flow_bytes=flow_bytes,
    )
