"""`emu nccl COLLECTIVE`: a sweep over sizes, as nccl-tests makes and prints it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from emu.cli.options import out_option, settings_option
from emu.cli.record import record
from emu.errors import ExitCode, UsageError
from emu.measure.recording import JobRecord
from emu.report.nccl import Sweep, closing, heading, row
from emu.spec.model import Spec, load_spec, spec_from_text
from emu.units import write_rate
from traffic.job import FLOAT_BYTES

PATTERNS = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "broadcast": "broadcast",
    "alltoall": "alltoall",
}
TREE_BELOW = 16_384
"""Bytes for each rank, below which `auto` takes a tree: few steps matter more than few bytes."""
LARGEST_REAL = 500_000_000
"""Bytes that all ranks send together, beyond which payloads are left out on the virtual clock."""
_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Bytes(click.ParamType[int]):
    """As nccl-tests has it: 8, 64K, 128M, 1G, powers of two."""

    name = "SIZE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        match = re.fullmatch(r"(\d+)([KMG]?)B?", str(value).upper())
        if match is None or not int(match[1]):
            self.fail(f"{value!r} is no size; write it like 8, 64K, 128M or 1G", param, ctx)
        return int(match[1]) * _SUFFIXES[match[2]]


@dataclass(frozen=True)
class Wanted:
    """What every run of the sweep has in common."""

    collective: str
    algorithm: str
    chunk_bytes: int
    channels: int
    root: int
    clock: str
    checks: bool

    def traffic(self, hosts: tuple[str, ...], gpus: int | None, size_bytes: int) -> str:
        """The spec's `traffic:` for one size."""
        keys = [
            "name: nccl",
            f"pattern: {PATTERNS[self.collective]}",
            f"among: [{', '.join(hosts)}]",
            f"size: {size_bytes}",
            f"chunk: {self.chunk_bytes}",
            f"channels: {self.channels}",
        ]
        if self.collective == "broadcast":
            keys.append(f"root: {hosts[self.root]}")
        if self.collective == "all_reduce":
            algorithm = self.algorithm_for(size_bytes // len(hosts))
            keys.append(f"algorithm: {algorithm}")
            if algorithm == "hierarchical":
                keys.append(f"gpus: {gpus or 1}")
        return f"traffic=[{{{', '.join(keys)}}}]"

    def algorithm_for(self, rank_bytes: int) -> str:
        if self.algorithm == "auto":
            return "tree" if rank_bytes < TREE_BELOW else "ring"
        return self.algorithm

    def payload(self, ranks: int, size_bytes: int) -> str:
        if self.clock == "real" or (self.checks and 2 * ranks * size_bytes <= LARGEST_REAL):
            return "payload=real"
        return "payload=elided"


@click.command("nccl", short_help="Collectives over a range of sizes, printed as nccl-tests does.")
@click.argument("collective", type=click.Choice(list(PATTERNS)))
@click.option("-b", "first", type=Bytes(), default="32M", show_default=True, help="First size.")
@click.option("-e", "last", type=Bytes(), default="32M", show_default=True, help="Last size.")
@click.option("-f", "factor", type=click.IntRange(min=2), help="Multiply the size by this.")
@click.option("-i", "increment", type=Bytes(), default="1M", help="Or add this.  [default: 1M]")
@click.option("-g", "ranks", type=click.IntRange(min=2), help="Ranks: hosts from h1 on.  [8]")
@click.option("-r", "root", type=click.IntRange(min=0), default=0, help="Root of a broadcast.")
@click.option("-c", "checks", type=bool, default=True, help="Check results: 1 or 0.  [default: 1]")
@click.option(
    "-a",
    "--algorithm",
    type=click.Choice(["auto", "ring", "tree", "double-tree", "halving-doubling", "hierarchical"]),
    default="auto",
    help="Of all_reduce. auto: a tree for small sizes, a ring for large ones.",
)
@click.option("--chunk", type=Bytes(), default="128K", show_default=True, help="Longest message.")
@click.option("--channels", type=click.IntRange(1, 32), default=1, help="Sets of queue pairs.")
@click.option("--spec", "path", type=click.Path(path_type=Path), help="The fabric, from a spec.")
@click.option("--fabric", type=click.Choice(["roce", "ib"]), help="Whatever the spec says.")
@settings_option
@click.option(
    "--clock",
    type=click.Choice(["virtual", "real"]),
    default="virtual",
    show_default=True,
    help="virtual: in this process, without waiting. real: a live lab of namespaces.",
)
@out_option
def command(
    collective: str,
    first: int,
    last: int,
    factor: int | None,
    increment: int,
    ranks: int | None,
    root: int,
    checks: bool,
    algorithm: str,
    chunk: int,
    channels: int,
    path: Path | None,
    fabric: str | None,
    settings: tuple[str, ...],
    clock: str,
    out: Path | None,
) -> None:
    """Run COLLECTIVE for sizes from -b to -e, and print what nccl-tests prints.

    \b
    emu nccl all_reduce -b 8 -e 128M -f 2 -g 8
    emu nccl alltoall -b 1M -e 16M -f 2 --fabric ib

    The fabric is one 400 Gbit/s switch, or that of --spec, whose traffic is
    replaced. Sizes are rounded to whole elements for every rank. Payloads of
    large sizes are left out, and #wrong is N/A.
    """
    chosen = (f"fabric={fabric}",) if fabric else ()
    base = _spec(path, ranks or 8, (*settings, *chosen))
    hosts = _ranks(base, ranks, root)
    wanted = Wanted(collective, algorithm, chunk, channels, root, clock, checks)
    sizes = list(_sizes(first, last, factor, increment, _unit(collective, len(hosts))))
    step = f"{factor}(factor)" if factor else f"{increment}(bytes)"
    sweep = Sweep(hosts, _device(base), sizes[0], sizes[-1], step, checks)
    for line in heading(sweep):
        click.echo(line)
    jobs: list[JobRecord] = []
    conclusive = True
    for size_bytes in sizes:
        traffic = wanted.traffic(hosts, base.hosts.gpus, size_bytes)
        own = (*_ALONE, traffic, wanted.payload(len(hosts), size_bytes))
        spec = _spec(path, len(hosts), (*settings, *chosen, *own))
        recording, *_ = record(spec.name, spec, clock, out or Path("out") / "nccl")
        conclusive &= recording.fidelity.verdict == "ok"
        jobs += recording.jobs
        click.echo(row(jobs[-1], root))
    for line in closing(jobs):
        click.echo(line)
    sys.exit(_exit_code(jobs, conclusive))


_ALONE = ("verify=[]", "compare={}", "capture=[]", "faults=[]", "time_limit=100s")
"""What of a spec does not hold for a sweep."""


def _spec(path: Path | None, ranks: int, settings: tuple[str, ...]) -> Spec:
    if path is not None:
        return load_spec(path, settings)
    text = _ONE_SWITCH.format(ranks=ranks).encode()
    return spec_from_text(text, source="nccl.emu.yml", settings=settings)


_ONE_SWITCH = """
topology:
  kind: leaf-spine
  spines: 1
  leaves: 1
  hosts_per_leaf: {ranks}
  links: {{host: {{rate: 400Gbit, length: 3m}}}}
switches: {{buffer: 64MB, pfc: {{xoff: 512KB, xon: 448KB}}}}
"""


def _ranks(spec: Spec, ranks: int | None, root: int) -> tuple[str, ...]:
    hosts = tuple(host.name for host in spec.topology.build().hosts)
    if (ranks or 0) > len(hosts):
        raise UsageError(f"-g {ranks}: the fabric has {len(hosts)} hosts; ask for no more ranks")
    chosen = hosts[:ranks]
    if root >= len(chosen):
        raise UsageError(f"-r {root}: ranks are 0 to {len(chosen) - 1}")
    return chosen


def _unit(collective: str, ranks: int) -> int:
    """Sizes are multiples of this: an element, or one for every rank's piece."""
    return FLOAT_BYTES * (1 if collective in ("all_reduce", "broadcast") else ranks)


def _sizes(first: int, last: int, factor: int | None, increment: int, unit: int) -> Iterator[int]:
    """From first to last, in whole units, none twice. Raises UsageError."""
    if last < first:
        raise UsageError(f"-e {last} is less than -b {first}; give the smaller size to -b")
    size, before = first, 0
    while size <= last:
        rounded = max(unit, size // unit * unit)
        if rounded != before:
            yield rounded
        before = rounded
        size = size * factor if factor else size + increment


def _device(spec: Spec) -> str:
    topology = spec.topology.build()
    port = topology.ports[topology.hosts[0].name][0]
    fabric = "InfiniBand" if spec.fabric == "ib" else "RoCEv2"
    return f"emulated {fabric} {write_rate(topology.cable[port].rate_bps)}"


def _exit_code(jobs: list[JobRecord], conclusive: bool) -> ExitCode:
    if not conclusive:
        return ExitCode.INCONCLUSIVE
    right = all(job.end_ns is not None and not job.wrong for job in jobs)
    return ExitCode.OK if right else ExitCode.CHECK_FAILED
