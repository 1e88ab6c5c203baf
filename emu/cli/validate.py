"""`emu validate SPEC`: prints all mistakes of a spec, or a summary. Starts nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from emu.cli.options import json_option, settings_option, spec_argument
from emu.errors import SpecError
from emu.measure.run_estimate import estimate_of
from emu.spec.model import Spec, load_spec
from emu.spec.rules.warnings import warnings_of
from emu.units import format_size

SCHEMA = "emu.validate/1"


@click.command("validate")
@spec_argument
@settings_option
@json_option
def command(path: Path, settings: tuple[str, ...], as_json: bool) -> None:
    """Check a spec file. If it has mistakes, print each with its line and exit with 2."""
    try:
        spec = load_spec(path, settings)
    except SpecError as error:
        if as_json:
            _print({"ok": False, "findings": error.findings})
        raise
    made, warnings = Made.by(spec), list(_warnings(spec))
    estimate = None if spec.streams().flows else estimate_of(spec)
    if as_json:
        needs = asdict(estimate) if estimate else None
        document = {"warnings": warnings, **asdict(made), "estimate": needs}
        _print({"ok": True, "findings": [], **document})
        return
    for warning in warnings:
        click.echo(f"{path}: warning: {warning}", err=True)
    click.echo(f"{path}: ok: {made}")
    if estimate:
        each = " for each variant" if spec.compare else ""
        click.echo(f"{path}: on the virtual clock a run takes {estimate}{each}")


def _warnings(spec: Spec) -> Iterator[str]:
    """The warnings of the spec, and the further ones of its variants."""
    own = warnings_of(spec)
    yield from own
    for name, variant in spec.variants().items():
        yield from (f"compare.{name}: {text}" for text in warnings_of(variant) if text not in own)


@dataclass(frozen=True)
class Made:
    """The size of a valid spec's fabric and traffic."""

    name: str
    fabric: str
    hosts: int
    switches: int
    cables: int
    flows: int
    bytes: int
    variants: list[str]

    @classmethod
    def by(cls, spec: Spec) -> Made:
        topology, graphs = spec.topology.build(), (spec.workload(), spec.streams())
        return cls(
            name=spec.name,
            fabric=spec.fabric,
            hosts=len(topology.hosts),
            switches=len(topology.switches),
            cables=len(topology.cables),
            flows=sum(len(graph.message_flows) for graph in graphs),
            bytes=sum(graph.total_bytes for graph in graphs),
            variants=list(spec.compare),
        )

    def __str__(self) -> str:
        variants = f"; variants {', '.join(self.variants)}" if self.variants else ""
        return (
            f"{self.fabric}, {self.hosts} hosts, {self.switches} switches, "
            f"{self.cables} cables, {self.flows} flows, {format_size(self.bytes)} in all"
            f"{variants}"
        )


def _print(document: dict[str, object]) -> None:
    click.echo(json.dumps({"schema": SCHEMA, **document}, indent=2))
