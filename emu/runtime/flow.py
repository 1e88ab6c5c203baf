"""The flow model: no packets, and no clock to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from emu.clocks import VIRTUAL
from emu.flow_model.limits import refuse
from emu.flow_model.network import network_of
from emu.flow_model.record import recording_of
from emu.flow_model.shapes import shapes_of
from emu.flow_model.simulation import TOLERANCE, Simulation
from emu.measure.recording import Recording
from emu.measure.run_progress import RunProgress
from emu.runtime.runner import Runner
from emu.spec.scenario import Spec
from emu.subnet.sm_sweeps import swept
from emu.subnet.subnet import Subnet


class FlowRunner(Runner):
    """Runs specs by the flow model, in this process."""

    clock = VIRTUAL

    def __init__(self, subnet: Subnet | None = None, tolerance: float = TOLERANCE) -> None:
        """`subnet`: the subnet manager's decisions for all specs that are run; worked out for each
        one where it is not given. `tolerance`: see emu.flow_model.simulation."""
        self._subnet = subnet
        self._tolerance = tolerance

    def refuse(self, spec: Spec) -> None:
        refuse(spec)

    def for_series(self, specs: Sequence[Spec]) -> FlowRunner:
        first, *others = specs
        return FlowRunner(swept(first, first.topology.build(), *others), self._tolerance)

    def _run(
        self,
        spec: Spec,
        *,
        out: Path,
        on_progress: Callable[[RunProgress], None],
        on_note: Callable[[str], None],
    ) -> Recording:
        """As `Runner.run`; there are no captures."""
        topology, graph = spec.topology.build(), spec.workload()
        subnet = self._subnet or swept(spec, topology)
        began = time.monotonic()
        network = network_of(spec, topology, graph, subnet)
        shapes = shapes_of(spec, topology, graph, network)
        with Simulation(graph, network, shapes, tolerance=self._tolerance) as simulation:
            for seen in simulation.run(spec.time_limit_ps, spec.sample_interval_ps):
                on_progress(
                    RunProgress(
                        emulated_ns=seen.now_ps // 1000,
                        bytes_done=seen.bytes,
                        bytes_total=graph.total_bytes,
                        flows_done=seen.flows_done,
                        flows_total=len(graph.flows),
                    )
                )
            return recording_of(
                spec,
                topology,
                network,
                simulation,
                wall_seconds=time.monotonic() - began,
                notes=subnet.notes if subnet else (),
            )
