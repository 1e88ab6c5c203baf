"""Synthetic recordings for tests: plausible, simple, and always the same.

Flows grow evenly from start to end, queues rise to a peak and fall again, and waiting ports wait
for a fixed share of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emu.measure.recording import MachineSeries, Recording, Series
from emu.measure.records import Counters, FaultRecord, Fidelity, FlowRecord
from emu.report.run_view import RunFacts
from emu.spec.model import Spec
from topologies.graph import Topology

SAMPLES = 200

INCAST: dict[str, Any] = {
    "name": "incast",
    "seed": 7,
    "topology": {
        "kind": "leaf-spine",
        "spines": 2,
        "leaves": 2,
        "hosts_per_leaf": 4,
        "links": {
            "host": {"rate": "100Gbit", "delay": "500ns"},
            "fabric": {"rate": "100Gbit", "delay": "500ns"},
        },
    },
    "traffic": [
        {"name": "incast", "pattern": "incast", "from": "h2-h8", "to": "h1", "size": "1MB"},
        {"name": "victim", "pattern": "pair", "from": "h5", "to": "h3", "size": "1MB"},
    ],
    "verify": [
        {"completed": "all"},
        {"lossless": {"priority": 3}},
        {"goodput": {"flow": "victim", "at_least": "60Gbit"}, "fail": "head-of-line blocking"},
        {"finish": {"traffic": "incast", "by": "700us"}},
    ],
}

INCONCLUSIVE = Fidelity(
    verdict="inconclusive",
    late_p50_ns=20,
    late_p99_ns=812,
    late_max_ns=9_100,
    budget_ns=334,
    reasons=("one frame in a hundred left 812 ns late, and the budget is 334 ns",),
)

FAULTS = (
    FaultRecord("storm", "pause-storm", "h1", 100_000, 150_000, 0, 3, 0),
    FaultRecord("loss-2", "loss", "leaf1:spine1", 0, None, 12_800, 50, 50),
)

_HOSTS: dict[str, Counters] = {"h1": {"np_cnp_sent": 0, "out_of_sequence": 0}}
_HOSTS_OF_IB = _HOSTS | {"h5": {"PortXmitWait_VL0": 234_000}}


def spec(**changes: Any) -> Spec:
    """The incast scenario, with top-level keys changed."""
    return Spec.model_validate(INCAST | changes)


def record(
    spec: Spec,
    *,
    ends_ns: Mapping[str, int | None],
    queues: Mapping[str, int] | None = None,
    waiting: Mapping[str, float] | None = None,
    totals: Counters | None = None,
    resent: Mapping[str, int] | None = None,
    ports: Mapping[str, Counters] | None = None,
    **fields: Any,
) -> Recording:
    """A run of `spec` with given ends of flows and activity of ports.

    `ends_ns`, `resent`: by flow. `queues` (peak bytes), `waiting` (share of the time), `ports`
    (counters): by port name. Ports without values are idle.
    """
    topology = spec.topology.build()
    flows = tuple(_flows(spec, ends_ns, resent or {}))
    last = max([flow.end_ns or 0 for flow in flows] + [1_000])
    given: dict[str, Any] = {
        "name": spec.name,
        "fabric": spec.fabric,
        "plane": "ovs" if spec.fabric == "roce" else "shim",
        "clock": "real",
        "slowdown": 1000.0,
        "seed": spec.seed,
        "marker": "none",
        "flows": flows,
        "ports": dict(ports or {}),
        "hosts": _HOSTS,
        "totals": totals or {"packets": 1960, "packet_hops": 7840},
        "series": _series(topology, flows, last, queues or {}, waiting or {}, spec.fabric == "ib"),
        "fidelity": Fidelity("ok", 20, 210, 305, budget_ns=334),
        "wall_seconds": 1.25,
        "captures": {"leaf1:h1": Path("out/leaf1-h1.pcapng")},
    }
    return Recording(**given | fields)


def machine_series() -> MachineSeries:
    """A hiccup at 400 us, during which Open vSwitch delayed frames and lost some."""
    return MachineSeries(
        ledger_time_ns=np.arange(1, 7) * 100_000,
        kept_ns=np.array([90, 80, 85, 700, 90, 80]),
        losses=("ovs", "arriving", "leaving", "place"),
        lost_frames=np.array([[0, 0, 0, 0]] * 3 + [[2, 1, 0, 0]] + [[0, 0, 0, 0]] * 2),
        cpu_time_ns=np.array([-50_000, 200_000, 400_000, 600_000]),
        cpu_users=("shim", "other"),
        cpu_ns=np.array([[0, 0], [100_000_000, 0], [120_000_000, 180_000_000], [2 * 10**8] * 2]),
    )


def _flows(spec: Spec, ends_ns: Mapping[str, int | None], resent: Mapping[str, int]) -> Any:
    graph = spec.workload()
    for flow in graph.flows:
        operations = [graph.operations[id] for id in flow.operations]
        end = ends_ns[flow.name]
        yield FlowRecord(
            name=flow.name,
            traffic=flow.traffic,
            src=flow.src,
            dst=flow.dst,
            op=flow.verb.value,
            bytes=sum(operation.size_bytes for operation in operations),
            start_ns=operations[0].not_before_ns,
            end_ns=end,
            retransmitted_packets=resent.get(flow.name, 0),
            completed=end is not None,
        )


def _series(
    topology: Topology,
    flows: tuple[FlowRecord, ...],
    last_ns: int,
    queues: Mapping[str, int],
    waiting: Mapping[str, float],
    with_credits: bool,
) -> Series:
    time = np.linspace(0, last_ns, SAMPLES).astype(np.int64)
    names = tuple(topology.port_named)
    flow_bytes = np.column_stack([_delivered(flow, time, last_ns) for flow in flows])
    tx = np.zeros((SAMPLES, len(names)), np.int64)
    for flow, delivered in zip(flows, flow_bytes.T, strict=True):
        for port in _path(topology, flow.src, flow.dst):
            tx[:, names.index(port)] += delivered
    hill = 1 - np.abs(2 * time / last_ns - 1)
    queue = np.column_stack([hill * queues.get(name, 0) for name in names]).astype(np.int64)
    waited = np.column_stack([time * waiting.get(name, 0.0) for name in names]).astype(np.int64)
    nothing = np.zeros_like(queue)
    return Series(
        time_ns=time,
        ports=names,
        queue_bytes=queue,
        buffer_bytes=queue,
        tx_bytes=tx,
        paused_ns=nothing if with_credits else waited,
        credit_wait_ns=waited if with_credits else nothing,
        flows=tuple(flow.name for flow in flows),
        flow_bytes=flow_bytes,
    )


def _delivered(flow: FlowRecord, time: NDArray[np.int64], last_ns: int) -> NDArray[np.int64]:
    end, size = (flow.end_ns, flow.bytes) if flow.end_ns else (last_ns, flow.bytes // 2)
    return np.interp(time, [flow.start_ns, end], [0, size]).astype(np.int64)


def _path(topology: Topology, src: str, dst: str) -> list[str]:
    """Names of the sending ports on the first of the shortest paths."""
    port = topology.ports[src][0]
    names = [topology.port_name[port]]
    while topology.peer[port].node != dst:
        port = topology.next_hops[topology.peer[port].node][dst][0]
        names.append(topology.port_name[port])
    return names


LAST_FINISH_NS = {
    "roce-lossy": 900_000,
    "roce-pfc": 605_000,
    "roce-dcqcn": 660_000,
    "ib": 596_000,
}
"""The end of the incast on each of the four fabrics."""
_VICTIM = {"roce-lossy": 300_000, "roce-pfc": 420_000, "roce-dcqcn": 105_000, "ib": 390_000}
_TOTALS: dict[str, Counters] = {
    "roce-lossy": {"packets": 2300, "drops_lossy": 312, "retransmitted_packets": 460},
    "roce-pfc": {"packets": 1960, "pause_frames": 345},
    "roce-dcqcn": {"packets": 1960, "pause_frames": 41, "ce_marked": 530, "cnp": 88},
    "ib": {"packets": 1960, "credit_updates": 15_300},
}
_INTO_H1 = ("spine1:leaf1", "spine2:leaf1", "h2:leaf1", "h3:leaf1", "h4:leaf1")
_INTO_SPINES = ("leaf2:spine1", "leaf2:spine2", "h5:leaf2", "h6:leaf2", "h7:leaf2", "h8:leaf2")
_WAITING = {"roce-lossy": 0.0, "roce-pfc": 0.7, "roce-dcqcn": 0.08, "ib": 0.65}
_PORTS: dict[str, dict[str, Counters]] = {
    "roce-lossy": {"leaf1:h1": {"tx_prio3_discards": 312}},
    "ib": {port: {"PortXmitWait": 240_000} for port in _INTO_H1},
}


def four_fabrics() -> list[RunFacts]:
    """The incast on four fabrics, as `emu compare` would report it."""
    return [_fabric(name) for name in LAST_FINISH_NS]


def _fabric(name: str) -> RunFacts:
    scenario = spec(fabric="ib" if name == "ib" else "roce", verify=INCAST["verify"][:2])
    last, share = LAST_FINISH_NS[name], _WAITING[name]
    ends = {
        f"incast.h{n}-h1": last - (8 - n) * (60_000 if name == "roce-lossy" else 4_000)
        for n in range(2, 9)
    }
    recording = record(
        scenario,
        ends_ns=ends | {"victim": _VICTIM[name]},
        queues={"leaf1:h1": 1_400_000 if name == "roce-lossy" else 300_000}
        | {port: int(share * 120_000) for port in _INTO_H1[:2]},
        waiting=dict.fromkeys(_INTO_H1, share) | dict.fromkeys(_INTO_SPINES, share * 0.6),
        totals=_TOTALS[name],
        ports=_PORTS.get(name, {}),
        resent={"incast.h8-h1": 460} if name == "roce-lossy" else {},
        hosts=_HOSTS_OF_IB if name == "ib" else _HOSTS,
        marker="ebpf" if name == "roce-dcqcn" else "none",
    )
    return run(recording, scenario, name)


def run(recording: Recording, spec: Spec, name: str | None = None) -> RunFacts:
    return RunFacts(name or recording.name, recording, spec, spec.topology.build())
