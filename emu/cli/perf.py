"""`emu perf TEST [SPEC]`: bandwidth or latency of one pair, printed as perftest does."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from emu.cli.options import json_option, settings_option
from emu.cli.record import record
from emu.cli.say import say
from emu.errors import ExitCode, FabricError
from emu.measure.recording import Recording
from emu.measure.requests import UNFINISHED
from emu.perf.benchmark import DEFAULT, NAMES, Benchmark
from emu.perf.figures import Bandwidth, Latency, bandwidth, latency
from emu.perf.table import RULE, header, line
from emu.spec.model import Spec, load_spec, spec_from_text

_LARGEST = 23
"""With --all: 2 bytes to 2 to this power."""


@click.command("perf")
@click.argument("test", type=click.Choice(NAMES))
@click.argument("path", metavar="[SPEC]", required=False, type=click.Path(path_type=Path))
@click.option("--from", "src", metavar="HOST", help="Who sends or asks.  [default: the first host]")
@click.option("--to", "dst", metavar="HOST", help="The other end.  [default: the last host]")
@click.option("-s", "--size", type=int, help="Bytes of a message.  [default: bw 65536, lat 2]")
@click.option("-a", "--all", "every_size", is_flag=True, help="Sizes from 2 to 2^23.")
@click.option("-n", "--iters", type=click.IntRange(min=2), default=1000, show_default=True)
@click.option("-t", "--tx-depth", type=click.IntRange(min=1), default=128, show_default=True)
@click.option(
    "-c",
    "--connection",
    type=click.Choice(["RC", "UC", "UD"], case_sensitive=False),
    default="RC",
    show_default=True,
)
@settings_option
@click.option(
    "--clock",
    type=click.Choice(["real", "virtual"]),
    default="virtual",
    show_default=True,
    help="real: a live lab of namespaces. virtual: in this process, without waiting.",
)
@json_option
def command(
    test: str,
    path: Path | None,
    src: str | None,
    dst: str | None,
    size: int | None,
    every_size: bool,
    iters: int,
    tx_depth: int,
    connection: str,
    settings: tuple[str, ...],
    clock: str,
    as_json: bool,
) -> None:
    """Measure one pair of hosts as perftest would, on SPEC's fabric or on two hosts and a switch.

    Times are emulated. Bandwidth is of message bytes, from the first posting until the last byte
    is in memory; --set fabric=ib measures the other fabric.
    """
    benchmark = Benchmark(test, iters, tx_depth, connection.lower())
    fabric = (
        load_spec(path, settings)
        if path
        else spec_from_text(DEFAULT.encode(), source="perf", settings=settings)
    )
    sizes = _sizes(benchmark, size, every_size)
    if not as_json:
        click.echo(f"{RULE}\n{header(is_latency=benchmark.is_latency)}")
    lines = []
    for figures in _measured(benchmark, fabric, (src, dst), sizes, clock):
        lines.append(asdict(figures))
        if not as_json:
            click.echo(line(figures))
    if as_json:
        click.echo(json.dumps({"schema": "emu-perf/1", "test": test, "results": lines}, indent=2))
    else:
        click.echo(RULE)


def _sizes(benchmark: Benchmark, size: int | None, every_size: bool) -> list[int]:
    if benchmark.name.startswith("atomic"):
        return [8]
    if every_size:
        return [2**power for power in range(1, _LARGEST + 1)]
    return [size or (2 if benchmark.is_latency else 65536)]


def _measured(
    benchmark: Benchmark,
    fabric: Spec,
    ends: tuple[str | None, str | None],
    sizes: list[int],
    clock: str,
) -> Iterator[Bandwidth | Latency]:
    for size_bytes in sizes:
        spec = benchmark.spec(fabric, ends, size_bytes)
        if clock == "virtual":
            spec = spec.model_copy(update={"payload": "elided"})
        with TemporaryDirectory(prefix="emu-perf-") as folder:
            recording, _, _ = record(benchmark.name, spec, clock, Path(folder), progress=StringIO())
        if recording.fidelity.verdict != "ok":
            say(f"inconclusive: {recording.fidelity.reasons[0]}")
            sys.exit(ExitCode.INCONCLUSIVE)
        yield _figures(benchmark, size_bytes, recording)


def _figures(benchmark: Benchmark, size_bytes: int, recording: Recording) -> Bandwidth | Latency:
    requests = recording.requests
    if (requests.end_ns == UNFINISHED).any():
        raise FabricError("messages were lost for good, so there is nothing to measure")
    if not benchmark.is_latency:
        return bandwidth(size_bytes, requests.start_ns, requests.end_ns)
    took_ns = (requests.end_ns - requests.start_ns) / (2 if benchmark.halves else 1)
    return latency(size_bytes, took_ns)
