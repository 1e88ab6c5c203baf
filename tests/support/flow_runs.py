"""Runs of specs by the flow model, and by packets on the virtual clock."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from emu.measure.recording import Recording
from emu.report.run_view import RunFacts
from emu.runtime.flow import FlowRunner
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import Spec
from emu.subnet.subnet import Subnet
from tests.support.small_fabrics import shortest_paths, spec_of


def subnet_of(spec: Spec) -> Subnet | None:
    """Tables of shortest paths for InfiniBand."""
    return shortest_paths(spec.topology.build()) if spec.fabric == "ib" else None


def by_flows(text: str, *settings: str, tolerance: float = 0.0) -> Recording:
    """A run by the flow model. By default every change takes effect at once."""
    spec = spec_of(text, *settings)
    return FlowRunner(subnet_of(spec), tolerance).run(spec, out=Path("unused"))


def with_packets(text: str, *settings: str) -> Recording:
    """A run on the virtual clock."""
    spec = spec_of(text, *settings)
    with TemporaryDirectory(prefix="emu-test-") as out:
        return VirtualRunner(subnet_of(spec)).run(spec, out=Path(out))


def facts_by_flows(text: str, *settings: str) -> RunFacts:
    """The facts of a run by the flow model, for reports."""
    spec = spec_of(text, *settings)
    return RunFacts(spec.name, by_flows(text, *settings), spec, spec.topology.build())


def last_end_ns(recording: Recording) -> int:
    """When the last flow ended; all must have."""
    assert all(flow.completed for flow in recording.flows)
    return max(flow.end_ns or 0 for flow in recording.flows)


def ends_ns(recording: Recording) -> dict[str, int]:
    """When each flow ended; all must have."""
    assert all(flow.end_ns is not None for flow in recording.flows)
    return {flow.name: flow.end_ns or 0 for flow in recording.flows}
