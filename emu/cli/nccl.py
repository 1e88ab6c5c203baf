"""`emu nccl COLLECTIVE`: a sweep over sizes, as nccl-tests makes and prints it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from emu.cli.fabric import load_fabric
from emu.cli.options import settings_option
from emu.cli.record import record, subnet_of
from emu.errors import ExitCode, UsageError
from emu.measure.recording import JobRecord
from emu.report.nccl import Sweep, closing, heading, row
from emu.spec.model import Spec, changed
from emu.units import write_rate
from traffic.collectives.collective import ALGORITHMS
from traffic.job import FLOAT_BYTES, Kind

KINDS = {
    "all_reduce": Kind.ALL_REDUCE,
    "all_gather": Kind.ALL_GATHER,
    "reduce_scatter": Kind.REDUCE_SCATTER,
    "broadcast": Kind.BROADCAST,
    "alltoall": Kind.ALL_TO_ALL,
}
"""By nccl-tests' names."""
MOST_BYTES = 1 << 31
"""Of a rank's buffer."""
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
        size_bytes = int(match[1]) * _SUFFIXES[match[2]]
        if size_bytes > MOST_BYTES:
            self.fail(f"{value!r} is too much; the most is 2G", param, ctx)
        return size_bytes


@dataclass(frozen=True)
class Wanted:
    """What every run of the sweep has in common."""

    collective: str
    """As nccl-tests calls it."""
    algorithm: str
    hosts: tuple[str, ...]
    """By rank."""
    gpus: int | None
    """Hosts in a row that are a server."""
    chunk_bytes: int
    channels: int
    root: int
    clock: str
    checks: bool

    @property
    def kind(self) -> Kind:
        return KINDS[self.collective]

    def spec(self, fabric: Spec, size_bytes: int) -> Spec:
        """The fabric with this collective on it. Raises SpecError where it cannot run there."""
        changes = {
            "traffic": [self.entry(size_bytes)],
            "payload": self.payload(size_bytes),
            "time_limit": "100s",
        }
        asked = (
            f"{self.collective} of {size_bytes} bytes, -g {len(self.hosts)} "
            f"--chunk {self.chunk_bytes} --channels {self.channels}"
        )
        return changed(fabric, changes, source=asked)

    def entry(self, size_bytes: int) -> dict[str, Any]:
        """Its entry of a spec's `traffic:`."""
        pattern = "alltoall" if self.kind is Kind.ALL_TO_ALL else self.kind.value
        keys = {
            "name": "nccl",
            "pattern": pattern,
            "among": list(self.hosts),
            "size": size_bytes,
            "chunk": self.chunk_bytes,
            "channels": self.channels,
        }
        if self.kind is Kind.BROADCAST:
            keys["root"] = self.hosts[self.root]
        if self.kind is Kind.ALL_REDUCE:
            keys["algorithm"] = self.algorithm_for(size_bytes)
            if keys["algorithm"] == "hierarchical":
                keys["gpus"] = self.gpus
        return keys

    def algorithm_for(self, size_bytes: int) -> str:
        if self.algorithm == "auto":
            return "tree" if size_bytes // len(self.hosts) < TREE_BELOW else "ring"
        return self.algorithm

    def payload(self, size_bytes: int) -> str:
        small = 2 * len(self.hosts) * size_bytes <= LARGEST_REAL
        return "real" if self.clock == "real" or (self.checks and small) else "elided"

    @property
    def unit_bytes(self) -> int:
        """Sizes are multiples of this: an element, or one for every rank's piece."""
        whole = self.kind in (Kind.ALL_REDUCE, Kind.BROADCAST)
        return FLOAT_BYTES * (1 if whole else len(self.hosts))

    @property
    def least_bytes(self) -> int:
        """Below this there is not an element for everybody who needs one."""
        whole = self.kind is Kind.BROADCAST or self.algorithm in ("auto", "tree")
        return self.unit_bytes if whole else FLOAT_BYTES * len(self.hosts)

    def sizes(self, first: int, last: int, factor: int | None, increment: int) -> Iterator[int]:
        """From first to last, rounded down to whole units, none twice. Raises UsageError."""
        if last < first:
            raise UsageError(f"-e {last} is less than -b {first}; give the smaller size to -b")
        size, before = first, 0
        while size <= last:
            rounded = max(self.least_bytes, size // self.unit_bytes * self.unit_bytes)
            if rounded != before:
                yield rounded
            before = rounded
            size = size * factor if factor else size + increment


@click.command("nccl")
@click.argument("collective", type=click.Choice(list(KINDS)))
@click.option("-b", "first", type=Bytes(), default="32M", show_default=True, help="First size.")
@click.option("-e", "last", type=Bytes(), default="32M", show_default=True, help="Last size.")
@click.option("-f", "factor", type=click.IntRange(min=2), help="Multiply the size by this.")
@click.option("-i", "increment", type=Bytes(), help="Or add this.  [default: 1M]")
@click.option("-g", "ranks", type=click.IntRange(min=2), help="Ranks: hosts from h1 on.  [8]")
@click.option("-r", "root", type=click.IntRange(min=0), help="Root of a broadcast.  [default: 0]")
@click.option("-c", "checks", type=bool, default=True, help="Check results: 1 or 0.  [default: 1]")
@click.option(
    "-a",
    "--algorithm",
    type=click.Choice(
        ["auto", *dict.fromkeys(name for own in ALGORITHMS.values() for name in own)]
    ),
    default="auto",
    help="auto: of all_reduce a tree for small sizes and a ring for large ones; others have one.",
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
def command(
    collective: str,
    first: int,
    last: int,
    factor: int | None,
    increment: int | None,
    ranks: int | None,
    root: int | None,
    checks: bool,
    algorithm: str,
    chunk: int,
    channels: int,
    path: Path | None,
    fabric: str | None,
    settings: tuple[str, ...],
    clock: str,
) -> None:
    """Run COLLECTIVE for sizes from -b to -e, and print what nccl-tests prints.

    \b
    emu nccl all_reduce -b 8 -e 128M -f 2 -g 8
    emu nccl alltoall -b 1M -e 16M -f 2 --fabric ib

    The fabric is one 400 Gbit/s switch, or that of --spec, without its traffic,
    checks, captures and faults. Sizes are rounded to whole elements for every
    rank. Payloads of large sizes are left out, and #wrong is N/A.
    """
    if factor and increment:
        raise UsageError(f"-f {factor} and -i {increment}: multiply or add? Leave one of them out")
    base = _fabric(path, ranks, fabric, settings)
    hosts = _ranks(base, ranks)
    wanted = Wanted(
        collective,
        _algorithm(collective, algorithm, base, len(hosts)),
        hosts,
        base.hosts.gpus,
        chunk,
        channels,
        _root(collective, root, len(hosts)),
        clock,
        checks,
    )
    increment = increment or _SUFFIXES["M"]
    sizes = list(wanted.sizes(first, last, factor, increment))
    specs = [wanted.spec(base, size_bytes) for size_bytes in sizes]
    by_algorithm = {
        wanted.algorithm_for(size): spec for size, spec in zip(sizes, specs, strict=True)
    }
    subnet = subnet_of([*by_algorithm.values()]) if clock == "virtual" else None
    step = f"{factor}(factor)" if factor else f"{increment}(bytes)"
    for line in heading(Sweep(hosts, _device(base), first, last, step, checks)):
        click.echo(line)
    jobs: list[JobRecord] = []
    conclusive = True
    for spec in specs:
        with TemporaryDirectory(prefix="emu-nccl-") as folder:
            recording, *_ = record(spec.name, spec, clock, Path(folder), subnet=subnet)
        conclusive &= recording.fidelity.verdict == "ok"
        jobs += [job if checks else replace(job, wrong=None) for job in recording.jobs]
        click.echo(row(jobs[-1], wanted.root))
    for line in closing(jobs):
        click.echo(line)
    sys.exit(_exit_code(jobs, conclusive))


def _fabric(
    path: Path | None, ranks: int | None, fabric: str | None, settings: tuple[str, ...]
) -> Spec:
    if fabric and any(setting.startswith("fabric=") for setting in settings):
        raise UsageError(f"--fabric {fabric} and --set fabric: leave one of them out")
    if path is None and (ranks or 0) > _PORTS:
        raise UsageError(
            f"-g {ranks}: one switch has {_PORTS} hosts at most; name a larger fabric by --spec"
        )
    chosen = (f"fabric={fabric}",) if fabric else ()
    one_switch = _ONE_SWITCH.format(ranks=ranks or 8, buffer=max(64, ranks or 8))
    return load_fabric(path, one_switch, (*settings, *chosen), verb="nccl")


_PORTS = 128
"""The most that a spec gives to a leaf's hosts."""
_ONE_SWITCH = """
topology:
  kind: leaf-spine
  spines: 1
  leaves: 1
  hosts_per_leaf: {ranks}
  links: {{host: {{rate: 400Gbit, length: 3m}}}}
switches: {{buffer: {buffer}MB, pfc: {{xoff: 512KB, xon: 448KB}}}}
"""


def _ranks(fabric: Spec, ranks: int | None) -> tuple[str, ...]:
    hosts = tuple(fabric.topology.build().host)
    if len(hosts) < 2:
        raise UsageError(f"a collective needs two hosts; {fabric.name} has one")
    if (ranks or 0) > len(hosts):
        raise UsageError(f"-g {ranks}: the fabric has {len(hosts)} hosts; ask for no more ranks")
    return hosts[:ranks]


def _algorithm(collective: str, asked: str, fabric: Spec, ranks: int) -> str:
    own = ALGORITHMS[KINDS[collective]]
    if asked not in ("auto", *own):
        raise UsageError(f"-a {asked}: {collective} has {', '.join(own)} alone; leave -a out")
    if asked != "hierarchical":
        return asked
    gpus = fabric.hosts.gpus
    if gpus is None:
        raise UsageError(
            f"-a {asked}: every host stands alone; say how many are a server, e.g. --set "
            "hosts.gpus=4"
        )
    if ranks % gpus:
        raise UsageError(
            f"-g {ranks}: with -a {asked} ranks must be whole servers of {gpus} (hosts.gpus); "
            f"take {ranks // gpus * gpus or gpus}"
        )
    return asked


def _root(collective: str, root: int | None, ranks: int) -> int:
    if root is None:
        return 0
    if KINDS[collective] is not Kind.BROADCAST:
        raise UsageError(f"-r {root}: {collective} has no root; leave it out")
    if root >= ranks:
        raise UsageError(f"-r {root}: ranks are 0 to {ranks - 1}")
    return root


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
