"""A recording of the real clock at slowdown 1000, merged from given observations."""

from __future__ import annotations

from emu.clocks import REAL
from emu.measure.cpu import NO_CPU_SAMPLES, CpuSamples
from emu.measure.merge import merge_observations
from emu.measure.observation import Observation
from emu.measure.recording import Recording
from emu.runtime.virtual import VirtualFabric
from emu.spec.model import spec_from_text

SPEC = spec_from_text(
    b"""
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 4KB}]
""",
    source="test.emu.yml",
)
TOPOLOGY = SPEC.topology.build()


def at_the_start() -> Observation:
    """The observation of the whole fabric before the start."""
    with VirtualFabric(SPEC, TOPOLOGY) as run:
        return run.observe()


def recorded(*seen: Observation, cpu: CpuSamples = NO_CPU_SAMPLES) -> Recording:
    return merge_observations(
        SPEC,
        TOPOLOGY,
        seen,
        plane="ovs",
        clock=REAL,
        slowdown=1000.0,
        marker="none",
        wall_seconds=1.0,
        captures={},
        cpu=cpu,
    )
