"""`emu nccl COLLECTIVE`: runs a collective over a range of sizes, as nccl-tests does."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from click.core import ParameterSource

from emu.cli.fabric import load_fabric
from emu.cli.options import (
    clock_option,
    json_option,
    quiet_option,
    settings_option,
    threads_option,
)
from emu.clocks import CLOCKS, Clock
from emu.errors import ExitCode, UsageError
from emu.fabric_kind import FABRIC_KINDS
from emu.limits import MAX_SWITCH_PORTS
from emu.measure.forecast import Forecast
from emu.measure.nccl_output import MeasuredRun, MeasuredSize, read_measured
from emu.measure.records import JobRecord
from emu.output_dir import refuse_unwritable, write_text, writing_into
from emu.report.diagnosis import diagnoses
from emu.report.nccl import Sweep, closing, heading, row, to_mapping
from emu.report.nccl_channels import Channels, channel_lines
from emu.report.nccl_measured import Beside, closing_lines, page
from emu.report.nccl_measured import to_mapping as measured_mapping
from emu.report.run_view import RunFacts
from emu.runtime import Runner, runner_on
from emu.runtime.choose import on_threads
from emu.runtime.record import record
from emu.spec.model import Spec, changed
from emu.units import write_rate
from traffic.collectives.channels import MOST, Servers, in_a_row
from traffic.collectives.collective import ALGORITHMS, Cut, channels_for
from traffic.job import FLOAT_BYTES, Job, Kind

KINDS = {
    "all_reduce": Kind.ALL_REDUCE,
    "all_gather": Kind.ALL_GATHER,
    "reduce_scatter": Kind.REDUCE_SCATTER,
    "broadcast": Kind.BROADCAST,
    "alltoall": Kind.ALL_TO_ALL,
}
"""nccl-tests' name -> the kind of collective."""
MOST_BYTES = 1 << 31
"""The largest buffer of a rank."""
ALIKE = 1.01
"""Forecasts that differ by less than this factor count as equal; `auto` takes the first."""
DEBUG = "NCCL_DEBUG"
"""NCCL's variable. INFO shows the channels also if no server has several NICs."""
NAME = "nccl"
"""The name of the traffic entry."""
LARGEST_REAL = 500_000_000
"""If all ranks send more bytes than this, payloads are left out on the virtual clock."""
_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Bytes(click.ParamType[int]):
    """A size as nccl-tests writes it, with powers of two: 8, 64K, 128M, 1G."""

    name = "SIZE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        match = re.fullmatch(r"(\d+)([KMG]?)B?", str(value).upper())
        if match is None or not int(match[1]):
            self.fail(f"{value!r} is not a size; write it like 8, 64K, 128M or 1G", param, ctx)
        size_bytes = int(match[1]) * _SUFFIXES[match[2]]
        if size_bytes > MOST_BYTES:
            self.fail(f"{value!r} is too large; the largest size is 2G", param, ctx)
        return size_bytes


@dataclass(frozen=True)
class Wanted:
    """The settings that all runs of the sweep share."""

    collective: str
    """nccl-tests' name of the collective."""
    algorithm: str
    hosts: tuple[str, ...]
    """By rank."""
    gpus: int | None
    """The number of consecutive hosts that form a server; None: hosts are no servers."""
    chunk_bytes: int
    channels: int | None
    """None: one for each NIC of a server."""
    root: int
    clock: Clock
    checks: bool

    @property
    def kind(self) -> Kind:
        return KINDS[self.collective]

    @property
    def servers(self) -> Servers:
        return in_a_row(len(self.hosts), self.gpus or 1)

    def spec(self, fabric: Spec, size_bytes: int, algorithm: str) -> Spec:
        """The fabric with this collective as traffic. Raises SpecError if it cannot run there."""
        changes = {
            "traffic": [self.entry(size_bytes, algorithm)],
            "payload": self.payload(size_bytes),
            "time_limit": "100s",
        }
        channels = self.cut(size_bytes, algorithm).channels
        requested = (
            f"{self.collective} of {size_bytes} bytes, -g {len(self.hosts)} "
            f"--chunk {self.chunk_bytes} --channels {channels}"
        )
        return changed(fabric, changes, source=requested)

    def entry(self, size_bytes: int, algorithm: str) -> dict[str, Any]:
        """The collective's entry of a spec's `traffic:`."""
        pattern = "alltoall" if self.kind is Kind.ALL_TO_ALL else self.kind.value
        keys = {
            "name": NAME,
            "pattern": pattern,
            "among": list(self.hosts),
            "size": size_bytes,
            "chunk": self.chunk_bytes,
            "channels": self.cut(size_bytes, algorithm).channels,
        }
        if self.kind is Kind.BROADCAST:
            keys["root"] = self.hosts[self.root]
        if self.kind is Kind.ALL_REDUCE:
            keys["algorithm"] = algorithm
            if algorithm == "hierarchical":
                keys["gpus"] = self.gpus
        return keys

    def job(self, size_bytes: int, algorithm: str) -> Job:
        return Job(NAME, self.kind, algorithm, self.hosts, size_bytes, self.root)

    def cut(self, size_bytes: int, algorithm: str) -> Cut:
        channels = self.channels or channels_for(self.job(size_bytes, algorithm), self.servers)
        return Cut(self.chunk_bytes, channels)

    def algorithm_for(self, size_bytes: int, forecast: Forecast) -> str:
        """The chosen algorithm; with `auto` the first of those with the shortest forecast."""
        if self.algorithm != "auto":
            return self.algorithm
        able = [name for name in ALGORITHMS[self.kind] if self._is_able(name, size_bytes)]
        if len(able) == 1:
            return able[0]
        took = {
            name: forecast.took_ns(
                self.job(size_bytes, name), self.cut(size_bytes, name), self.servers
            )
            for name in able
        }
        return next(name for name in able if took[name] <= ALIKE * min(took.values()))

    def _is_able(self, algorithm: str, size_bytes: int) -> bool:
        """Whether `auto` can choose it: each piece has an element, and servers are whole."""
        pieces = 1 if algorithm in ("tree", "chain") else len(self.hosts)
        whole = self.gpus is not None and len(self.hosts) % self.gpus == 0
        return size_bytes >= FLOAT_BYTES * pieces and (whole or algorithm != "hierarchical")

    def payload(self, size_bytes: int) -> str:
        small = 2 * len(self.hosts) * size_bytes <= LARGEST_REAL
        return "elided" if self.clock.elides_payload and not (self.checks and small) else "real"

    @property
    def unit_bytes(self) -> int:
        """Sizes are multiples of this: of an element, or of an element for each rank."""
        whole = self.kind in (Kind.ALL_REDUCE, Kind.BROADCAST)
        return FLOAT_BYTES * (1 if whole else len(self.hosts))

    @property
    def least_bytes(self) -> int:
        """The smallest size, in which every rank that needs an element has one."""
        whole = self.kind is Kind.BROADCAST or self.algorithm in ("auto", "tree")
        return self.unit_bytes if whole else FLOAT_BYTES * len(self.hosts)

    def rounded(self, size: int) -> int:
        """The largest size that can be run and is no larger, or the smallest of all."""
        return max(self.least_bytes, size // self.unit_bytes * self.unit_bytes)

    def sizes(self, first: int, last: int, factor: int | None, increment: int) -> Iterator[int]:
        """The sizes from first to last, rounded down to whole units, without repeats.

        Raises UsageError if there are none."""
        if last < first:
            raise UsageError(f"-e {last} is less than -b {first}; give the smaller size to -b")
        size, before = first, 0
        while size <= last:
            rounded = self.rounded(size)
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
    help="auto: for all_reduce, the algorithm with the shortest calculated time for each size; "
    "other collectives have one.",
)
@click.option("--chunk", type=Bytes(), default="128K", show_default=True, help="Longest message.")
@click.option(
    "--channels",
    type=click.IntRange(1, MOST),
    help="Sets of queue pairs, each through another NIC of a server.  [default: one for each "
    "NIC of a server; 1 without servers]",
)
@click.option(
    "--measured",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What nccl-tests measured: its output as printed, or a CSV file with size_bytes and "
    "busbw_gb_per_s. Runs the sizes of the file, within -b and -e if given, and prints measured "
    "beside emulated bus bandwidth.",
)
@click.option("--spec", "path", type=click.Path(path_type=Path), help="The fabric, from a spec.")
@click.option(
    "--fabric", type=click.Choice(list(FABRIC_KINDS)), help="Fabric to use instead of the spec's."
)
@settings_option
@clock_option
@threads_option
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the table (nccl.txt), the same as JSON (nccl.json) and as a page (nccl.html).",
)
@quiet_option
@json_option
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
    channels: int | None,
    measured: Path | None,
    path: Path | None,
    fabric: str | None,
    settings: tuple[str, ...],
    clock: str,
    threads: int | None,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run COLLECTIVE for sizes from -b to -e, and print what nccl-tests prints.

    \b
    emu nccl all_reduce -b 8 -e 128M -f 2 -g 8
    emu nccl alltoall -b 1M -e 16M -f 2 --fabric ib

    The fabric is one 400 Gbit/s switch, or that of --spec, without its traffic,
    checks, captures and faults. Sizes are rounded to whole elements for every
    rank. Payloads of large sizes are left out, and #wrong is N/A. Problems in the
    fabric are printed below the size, after a #.

    If servers have several NICs (hosts.gpus), lines above the table show which
    channel uses which NIC; with NCCL_DEBUG=INFO they are always shown.
    """
    chosen_by = (f"-f {factor}" if factor else "", f"-i {increment}" if increment else "")
    if measured and any(chosen_by):
        raise UsageError("--measured: the sizes are those of the file; leave -f and -i out")
    if all(chosen_by):
        raise UsageError(f"{' and '.join(chosen_by)}: multiply or add? Leave one of them out")
    figures = read_measured(measured) if measured else None
    runner = on_threads(runner_on(clock), threads)
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
        CLOCKS[clock],
        checks,
    )
    if out:
        refuse_unwritable(out)
    sizes = _sizes(wanted, figures, first, last, factor, increment or _SUFFIXES["M"])
    forecast = Forecast(base, base.topology.build())
    chosen = {size: wanted.algorithm_for(size, forecast) for size in sizes.measured}
    specs = [wanted.spec(base, size, algorithm) for size, algorithm in chosen.items()]
    by_algorithm = dict(zip(chosen.values(), specs, strict=True))
    runner = runner.for_series([*by_algorithm.values()])
    used = _channels(wanted, chosen)
    notes = tuple(_notes(wanted, chosen, used))
    device = _device(base)
    sweep = Sweep(hosts, wanted.servers, device, sizes.first, sizes.last, sizes.step, checks, notes)
    table = _Table(quiet=as_json)
    table.add_all(heading(sweep))
    done = _run_all(wanted, specs, runner, table, quiet=quiet)
    table.add_all(closing(done.jobs))
    rows = [
        Beside(job, theirs) for job, theirs in zip(done.jobs, sizes.measured.values(), strict=True)
    ]
    mapping = to_mapping(collective, hosts, used, done.jobs, done.wrong)
    if figures:
        mapping["measured"] = measured_mapping(figures, rows, len(hosts))
        table.add_all(closing_lines(figures, rows, len(hosts)))
    document = json.dumps(mapping, indent=2) + "\n"
    if out:
        with writing_into(out):
            write_text(out / "nccl.txt", table.text)
            write_text(out / "nccl.json", document)
            write_text(out / "nccl.html", page(collective, device, rows, figures))
    if as_json:
        click.echo(document, nl=False)
    sys.exit(_exit_code(done.jobs, done.conclusive))


@dataclass(frozen=True)
class _Sizes:
    """The sizes to run, and how nccl-tests would describe them."""

    measured: dict[int, MeasuredSize | None]
    """Each size, with its measurement if there is one."""
    first: int
    last: int
    step: str


def _sizes(
    wanted: Wanted,
    figures: MeasuredRun | None,
    first: int,
    last: int,
    factor: int | None,
    increment: int,
) -> _Sizes:
    if figures is None:
        step = f"{factor}(factor)" if factor else f"{increment}(bytes)"
        sizes = wanted.sizes(first, last, factor, increment)
        return _Sizes(dict.fromkeys(sizes), first, last, step)
    found = _measured_sizes(wanted, figures, first, last)
    return _Sizes({**found}, min(found), max(found), "as measured")


@dataclass(frozen=True)
class _Done:
    """The runs of all sizes."""

    jobs: list[JobRecord]
    wrong: list[list[str]]
    """For each job, sentences about what went wrong in the fabric."""
    conclusive: bool


def _run_all(
    wanted: Wanted, specs: Sequence[Spec], runner: Runner, table: _Table, *, quiet: bool
) -> _Done:
    """Runs every size, and adds its row to the table."""
    jobs: list[JobRecord] = []
    wrong: list[list[str]] = []
    conclusive = True
    for spec in specs:
        with TemporaryDirectory(prefix="emu-nccl-") as folder:
            recorded = record(spec.name, spec, runner, Path(folder), quiet=quiet)
            run = RunFacts(spec.name, *recorded)
        conclusive &= run.conclusive
        own = run.recording.jobs
        jobs += [job if wanted.checks else replace(job, wrong=None) for job in own]
        table.add(row(jobs[-1], wanted.root))
        wrong.append([diagnosis.in_short() for diagnosis in diagnoses(run)])
        table.add_all(f"# {sentence}" for sentence in wrong[-1])
    return _Done(jobs, wrong, conclusive)


def _measured_sizes(
    wanted: Wanted, figures: MeasuredRun, first: int, last: int
) -> dict[int, MeasuredSize]:
    """The sizes to run, each with its measurement; within -b and -e, if they are given."""
    source = click.get_current_context().get_parameter_source
    least, most = (
        limit if source(name) is ParameterSource.COMMANDLINE else default
        for name, limit, default in (("first", first, 1), ("last", last, MOST_BYTES))
    )
    found = {
        wanted.rounded(one.size_bytes): one
        for one in figures.sizes
        if least <= one.size_bytes <= most
    }
    if not found:
        raise UsageError(
            f"--measured {figures.file}: has no size from {least} to {most} bytes; the largest "
            "that is emulated is 2G"
        )
    return found


class _Table:
    """The lines of the table. Prints each at once, unless stdout is for JSON."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def add(self, line: str) -> None:
        self._lines.append(line)
        if not self._quiet:
            click.echo(line)

    def add_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.add(line)


def _channels(wanted: Wanted, chosen: dict[int, str]) -> list[Channels]:
    """The channels of each algorithm in use: as many as its largest size has."""
    largest = {algorithm: size for size, algorithm in chosen.items()}
    return [
        Channels(algorithm, wanted.servers, wanted.cut(size, algorithm).channels)
        for algorithm, size in largest.items()
    ]


def _notes(wanted: Wanted, chosen: dict[int, str], used: list[Channels]) -> Iterator[str]:
    """Notes about the chosen algorithms and the channels' NICs."""
    if wanted.algorithm == "auto" and wanted.kind is Kind.ALL_REDUCE:
        for algorithm, sizes in groupby(chosen, chosen.__getitem__):
            first, *rest = sizes
            upto = f" to {rest[-1]}" if rest else ""
            yield f"auto: {algorithm} for {first}{upto} bytes"
    if wanted.gpus or os.environ.get(DEBUG, "").upper() == "INFO":
        for channels in used:
            yield from channel_lines(channels, wanted.hosts)


def _fabric(
    path: Path | None, ranks: int | None, fabric: str | None, settings: tuple[str, ...]
) -> Spec:
    if fabric and any(setting.startswith("fabric=") for setting in settings):
        raise UsageError(f"--fabric {fabric} and --set fabric: leave one of them out")
    if path is None and (ranks or 0) > _PORTS:
        raise UsageError(
            f"-g {ranks}: one switch has {_PORTS} hosts at most; give a larger fabric by --spec"
        )
    chosen = (f"fabric={fabric}",) if fabric else ()
    one_switch = _ONE_SWITCH.format(ranks=ranks or 8, buffer=max(64, ranks or 8))
    return load_fabric(path, one_switch, (*settings, *chosen), verb="nccl")


_PORTS = MAX_SWITCH_PORTS - 1
"""The largest number of hosts of a leaf with one spine."""
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


def _algorithm(collective: str, requested: str, fabric: Spec, ranks: int) -> str:
    own = ALGORITHMS[KINDS[collective]]
    if requested not in ("auto", *own):
        raise UsageError(f"-a {requested}: {collective} has {', '.join(own)} alone; leave -a out")
    if requested != "hierarchical":
        return requested
    gpus = fabric.hosts.gpus
    if gpus is None:
        raise UsageError(
            f"-a {requested}: every host stands alone; say how many are a server, e.g. --set "
            "hosts.gpus=4"
        )
    if ranks % gpus:
        raise UsageError(
            f"-g {ranks}: with -a {requested} ranks must be whole servers of {gpus} (hosts.gpus); "
            f"take {ranks // gpus * gpus or gpus}"
        )
    return requested


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
    return f"emulated {spec.fabric_kind.title} {write_rate(topology.cable[port].rate_bps)}"


def _exit_code(jobs: list[JobRecord], conclusive: bool) -> ExitCode:
    if not conclusive:
        return ExitCode.INCONCLUSIVE
    right = all(job.end_ns is not None and not job.wrong for job in jobs)
    return ExitCode.OK if right else ExitCode.CHECK_FAILED
