"""Runs a spec in a real lab, and sends frames and runs commands there during its traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from emu.lab.namespace import run_in_lab
from emu.lab.observation_file import read_observation
from emu.measure.raw_counters import RawCounters
from emu.measure.records import FlowRecord
from emu.spec.model import spec_from_text
from tests.support.driven_job import Drive


@dataclass(frozen=True)
class Driven:
    """The results of a driven run."""

    ports: Mapping[str, RawCounters]
    """Counters of the switches' ports."""
    flows: Mapping[str, FlowRecord]
    captures: Mapping[str, Path]
    output: Sequence[str]
    """The output of each command."""


def run_driven(
    text: str,
    out: Path,
    *,
    slowdown: float,
    frames: Sequence[tuple[str, bytes]] = (),
    commands: Sequence[Sequence[str]] = (),
) -> Driven:
    """Runs the spec; once its traffic flows, hosts send frames and run commands.

    Each frame is given with its host's name, each command begins with it.
    """
    spec = spec_from_text(text.encode(), source="driven.emu.yml", settings=())
    job = Drive(
        spec.to_json(),
        str(out),
        slowdown,
        frames=tuple((host, frame.hex()) for host, frame in frames),
        commands=tuple(map(tuple, commands)),
    )
    result, files = run_in_lab(
        job, on_progress=lambda _: None, module="tests.support.driven_inside"
    )
    shim, nics = map(read_observation, files)
    *output, done = result.output or [""]
    assert done == "done", "the traffic was over before anything could be done"
    return Driven(
        ports=shim.ports,
        flows={flow.name: flow for flow in nics.flows},
        captures={name: Path(path) for name, path in result.captures.items()},
        output=output,
    )
