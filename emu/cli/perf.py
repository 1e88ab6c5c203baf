"""`emu perf TEST [SPEC]`: measures bandwidth or latency of one pair of hosts as perftest does."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import click

from emu.cli.fabric import load_fabric
from emu.cli.notes import print_note
from emu.cli.options import clock_option, json_option, settings_option, threads_option
from emu.clocks import CLOCKS
from emu.errors import ExitCode, FabricError, UsageError
from emu.measure.recording import Recording
from emu.measure.requests import UNFINISHED
from emu.perf.arguments import BANDWIDTH_BYTES, LATENCY_BYTES, chosen_ends, chosen_sizes
from emu.perf.benchmark import DEFAULT, NAMES, Benchmark
from emu.perf.document import PERF_SCHEMA, Bandwidth, Latency
from emu.perf.figures import bandwidth, latency
from emu.perf.table import RULE, header, line, settings_lines
from emu.report.diagnosis import diagnoses
from emu.report.run_view import RunFacts
from emu.runtime import Runner, runner_on
from emu.runtime.choose import on_threads
from emu.runtime.record import record
from emu.spec.model import Spec


@click.command("perf")
@click.argument("test", type=click.Choice(NAMES))
@click.argument("path", metavar="[SPEC]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--from", "src", metavar="HOST", help="Host that sends or requests.  [default: the first host]"
)
@click.option("--to", "dst", metavar="HOST", help="The other host.  [default: the last host]")
@click.option(
    "-s",
    "--size",
    type=click.IntRange(1, 2**31),
    help=f"Bytes of a message.  [default: bw {BANDWIDTH_BYTES}, with UD the MTU; "
    f"lat {LATENCY_BYTES}]",
)
@click.option(
    "-a", "--all", "every_size", is_flag=True, help="Sizes from 2 to 2^23, with UD to the MTU."
)
@click.option("-n", "--iters", type=click.IntRange(2, 100_000), default=1000, show_default=True)
@click.option(
    "-t",
    "--tx-depth",
    type=click.IntRange(1, 100_000),
    help="bw: the most outstanding messages.  [default: 128]",
)
@click.option(
    "-c",
    "--connection",
    type=click.Choice(["RC", "UC", "UD"], case_sensitive=False),
    default="RC",
    show_default=True,
)
@settings_option
@clock_option
@threads_option
@json_option
def command(
    test: str,
    path: Path | None,
    src: str | None,
    dst: str | None,
    size: int | None,
    every_size: bool,
    iters: int,
    tx_depth: int | None,
    connection: str,
    settings: tuple[str, ...],
    clock: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Measure one pair of hosts as perftest would, on SPEC's fabric or on two hosts and a switch.

    SPEC's own traffic, captures and checks are left out. Times are emulated. Bandwidth counts
    message bytes from the first posting until the last byte is in memory; --set fabric=ib
    measures the other fabric.
    """
    runner = on_threads(runner_on(clock), threads)
    benchmark = _benchmark(test, iters, tx_depth, connection)
    fabric = load_fabric(path, DEFAULT, settings, verb="perf", faults=True)
    ends = chosen_ends(fabric, src, dst)
    sizes = chosen_sizes(benchmark, fabric, ends, size_bytes=size, every=every_size)
    payload: Literal["real", "elided"] = "elided" if CLOCKS[clock].elides_payload else "real"
    specs = [benchmark.spec(fabric, ends, size_bytes, payload) for size_bytes in sizes]
    if not as_json:
        for text in settings_lines(benchmark, fabric, ends):
            click.echo(text)
        click.echo(header(is_latency=benchmark.is_latency))
    lines = []
    for figures in _measured(benchmark, sizes, specs, runner):
        lines.append(asdict(figures))
        if not as_json:
            click.echo(line(figures))
    if as_json:
        click.echo(json.dumps({"schema": PERF_SCHEMA, "test": test, "results": lines}, indent=2))
    else:
        click.echo(RULE)


def _benchmark(test: str, iters: int, tx_depth: int | None, connection: str) -> Benchmark:
    benchmark = Benchmark(test, iters, transport=connection.lower())
    if tx_depth is None:
        return benchmark
    if benchmark.is_latency:
        raise UsageError(
            f"-t {tx_depth}: messages of {test} wait for one another, so only one is "
            "outstanding at a time; leave it out"
        )
    return replace(benchmark, depth=tx_depth)


def _measured(
    benchmark: Benchmark, sizes: Sequence[int], specs: Sequence[Spec], runner: Runner
) -> Iterator[Bandwidth | Latency]:
    runner = runner.for_series(specs)
    for size_bytes, spec in zip(sizes, specs, strict=True):
        with TemporaryDirectory(prefix="emu-perf-") as folder:
            recorded = record(benchmark.name, spec, runner, Path(folder), progress=StringIO())
        run = RunFacts(benchmark.name, *recorded)
        if not run.conclusive:
            print_note(f"inconclusive: {run.recording.fidelity.reasons[0]}")
            sys.exit(ExitCode.INCONCLUSIVE)
        for diagnosis in diagnoses(run):
            print_note(f"{size_bytes} bytes: {diagnosis.in_short()}")
        yield _figures(benchmark, size_bytes, run.recording)


def _figures(benchmark: Benchmark, size_bytes: int, recording: Recording) -> Bandwidth | Latency:
    requests = recording.requests
    if (requests.end_ns == UNFINISHED).any():
        raise FabricError("messages were lost for good, so there is nothing to measure")
    if not benchmark.is_latency:
        return bandwidth(size_bytes, requests.start_ns, requests.end_ns)
    took_ns = (requests.end_ns - requests.start_ns) / (2 if benchmark.halves else 1)
    return latency(size_bytes, took_ns)
