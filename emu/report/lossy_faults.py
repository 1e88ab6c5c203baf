"""Faults of the spec that lost packets: those of the whole run, and the worst on a flow's path.

    h2 ──▶ leaf1 ──▶ spine1 ─╳▶ leaf2 ──▶ h5      a cut here is on the path from h2 to h5,
                 ╲─▶ spine2 ──▶                    and leaves another path: routes avoid the cut

A flow's path means all shortest paths, there for its packets and back for the answers. FaultRecord
explains which packets count as lost by a fault. Packets without a route behind a lost link do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.measure.records import FailedQueuePair, FaultRecord
from emu.report.run_view import RunFacts
from emu.spec.fault import KINDS
from emu.spec.fault.kind import LostLinks
from emu.units import PS_PER_NS, ack_timeout_ps, format_time_ns
from topologies.graph import Port
from topologies.stages import Stage


def lossy_faults(run: RunFacts) -> list[FaultRecord]:
    """The faults that lost packets, the worst first."""
    lossy = [fault for fault in run.recording.faults if fault.packets_dropped]
    return sorted(lossy, key=lambda fault: -fault.packets_dropped)


def blamed(run: RunFacts, failed: FailedQueuePair) -> FaultRecord | None:
    """The worst fault on the path of a failed queue pair that was active while the queue pair
    retried; None without one."""
    nic = run.spec.host(failed.src).nic
    tried_ns = (nic.retry_count + 1) * ack_timeout_ps(nic.timeout) // PS_PER_NS
    for fault in lossy_faults(run):
        is_over = fault.end_ns is not None and fault.end_ns < failed.at_ns - tried_ns
        if fault.at_ns <= failed.at_ns and not is_over and any(_met(run, failed, fault)):
            return fault
    return None


def is_for_good(run: RunFacts, failed: FailedQueuePair, fault: FaultRecord) -> bool:
    """Whether more retries cannot help: the fault lasts to the end, and no route avoids it."""
    if fault.end_ns is not None:
        return False
    kind = KINDS[fault.kind]
    if not issubclass(kind, LostLinks):
        return True
    return kind.routed_around and any(len(stage) == 1 for stage in _met(run, failed, fault))


def lasts(fault: FaultRecord) -> str:
    """A clause with the start and the end of a fault."""
    end = "the end" if fault.end_ns is None else format_time_ns(fault.end_ns)
    return f"from {format_time_ns(fault.at_ns)} to {end}"


def _met(run: RunFacts, failed: FailedQueuePair, fault: FaultRecord) -> Iterator[Stage]:
    """The hops in both directions where the fault is at the cable or switch of at least one
    port."""
    for src, dst in ((failed.src, failed.dst), (failed.dst, failed.src)):
        for stage in run.paths.stages(src, dst):
            if any(_is_at(run, port, fault.place) for port in stage):
                yield stage


def _is_at(run: RunFacts, port: Port, place: str) -> bool:
    """Whether a fault's place is at this port. A place is a switch, a host, or a cable, which has
    the name of either of its ports."""
    far = run.topology.peer[port]
    names = (port.node, far.node, run.topology.port_name[port], run.topology.port_name[far])
    return place in names
