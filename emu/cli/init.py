"""`emu init`: writes a commented spec for a fabric, which options describe."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from emu.cli.notes import print_note
from emu.errors import UsageError
from emu.fabric_kind import FABRIC_KINDS, ROCE
from emu.limits import MAX_HOSTS, MAX_SWITCH_PORTS
from emu.output_dir import write_text

_TOPOLOGIES = ("leaf-spine", "fat-tree", "rail", "dumbbell", "ring", "parking-lot", "torus")
_PATTERNS = (
    "incast", "outcast", "pair", "permutation", "all-to-all", "hot-spot", "background",
    "all-reduce", "reduce-scatter", "all-gather", "broadcast", "alltoall", "storage",
)  # fmt: skip
_PRESETS = ("nvidia", "sonic", "cisco", "dctcp")


def _dimensions(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    """`3x4` as (3, 4)."""
    if text and not all(part.isdecimal() for part in text.split("x")):
        raise click.BadParameter(f"{text!r} is not the size of a grid; write it like 3x4")
    return tuple(map(int, text.split("x"))) if text else ()


def _congestion_control(
    context: click.Context, parameter: click.Parameter, name: str | None
) -> str | None:
    from emu.spec.congestion_control import CONTROLS  # slow to import; `emu --help` does not

    if name is not None and name not in CONTROLS:
        raise click.BadParameter(f"{name!r} is not one of {', '.join(sorted(CONTROLS))}")
    return name


@click.command("init")
@click.option(
    "-o",
    "--output",
    "target",
    default="",
    metavar="FILE",
    help="File to write; - is stdout.  [default: <pattern>.emu.yml]",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--fabric",
    type=click.Choice(list(FABRIC_KINDS)),
    default=ROCE.name,
    show_default=True,
    help="RoCEv2 over Ethernet, or InfiniBand.",
)
@click.option(
    "--topology",
    type=click.Choice(_TOPOLOGIES),
    default="leaf-spine",
    show_default=True,
    help="The topology of the switches.",
)
@click.option(
    "--hosts",
    type=click.IntRange(2, MAX_HOSTS),
    default=8,
    show_default=True,
    help="Number of hosts.",
)
@click.option(
    "--leaves",
    "--switches",
    "switches",
    type=click.IntRange(1, MAX_SWITCH_PORTS),
    help="Leaf switches, or switches of a ring or parking-lot.  [default: by the hosts]",
)
@click.option(
    "--spines",
    type=click.IntRange(1, MAX_SWITCH_PORTS),
    help="Spine switches.  [default: as many as a leaf has hosts, without oversubscription]",
)
@click.option(
    "--gpus",
    type=click.IntRange(2, MAX_SWITCH_PORTS),
    help="rail: GPUs of a server, each with a NIC of its own.  [default: 8]",
)
@click.option(
    "--dimensions",
    default="",
    metavar="NxM",
    callback=_dimensions,
    help="torus: switches in each direction, e.g. 3x4.  [default: 3x3]",
)
@click.option("--rate", default="100Gbit", show_default=True, help="Rate of all links.")
@click.option("--length", default="5m", show_default=True, help="Length of all cables.")
@click.option(
    "--pattern",
    type=click.Choice(_PATTERNS),
    default="incast",
    show_default=True,
    help="The traffic.",
)
@click.option("--size", help="Size of each message, buffer or block.  [default: by the pattern]")
@click.option("--preset", type=click.Choice(_PRESETS), help="Settings of a vendor's switches.")
@click.option(
    "--lossless/--lossy", default=None, help="RoCE: with PFC and ECN, or without.  [default: with]"
)
@click.option(
    "--cc",
    default=None,
    metavar="NAME",
    callback=_congestion_control,
    help="Congestion control, as hosts.nic.cc names it.  [default: by the fabric]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=1,
    show_default=True,
    help="Seed of everything random.",
)
@click.option(
    "--compare",
    is_flag=True,
    help="Add four variants for `emu compare`: RoCE lossy, with PFC, with DCQCN; InfiniBand.",
)
def command(target: str, force: bool, **options: Any) -> None:
    """Write a commented spec for a fabric. It is valid and can be run without changes
    (a ring with PFC may deadlock, which the report explains).

    \b
    emu init --fabric ib --hosts 64 --rate 400Gbit -o my.emu.yml
    emu init --topology rail --hosts 32 --pattern all-reduce --size 64MB
    emu init --preset sonic --pattern background --compare -o -
    """
    from emu.starter.data import LENGTH, RATE, SIZE, starter_data
    from emu.starter.options import StarterOptions
    from emu.starter.text import starter_text

    for option, kind in (("rate", RATE), ("length", LENGTH), ("size", SIZE)):
        if options[option] is not None:
            _refuse_unread(option, options[option], kind)
    _refuse_contradictions(options)
    options["lossless"] = options["lossless"] is not False
    path = Path(target or f"{options['pattern']}.emu.yml")
    name = options["pattern"] if target in ("", "-") else _name_of(path)
    text = starter_text(
        starter_data(StarterOptions(name=name, **options)), shlex.join(["emu", *_words()])
    )
    if target == "-":
        click.echo(text, nl=False)
        return
    _write(path, text, force)
    print_note(f"{path}: written; run it with `emu run {shlex.quote(str(path))}`")


def _words() -> list[str]:
    """The command line without the program's path."""
    return sys.argv[1:]


def _name_of(path: Path) -> str:
    from emu.spec.load import name_of

    return name_of(str(path))


def _refuse_unread(option: str, text: str, kind: Any) -> None:
    from pydantic import ValidationError

    try:
        kind.validate_python(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"--{option}: {reason}") from None


def _refuse_contradictions(options: dict[str, Any]) -> None:
    if FABRIC_KINDS[options["fabric"]].uses_credits and (
        options["preset"] or options["lossless"] is not None
    ):
        option = "--preset" if options["preset"] else "--lossless and --lossy"
        raise UsageError(f"{option}: only for RoCE; InfiniBand has credits. Leave it out")
    if options["preset"] and options["lossless"] is not None:
        raise UsageError("--preset decides what is lossless; leave out --lossless and --lossy")


def _write(path: Path, text: str, force: bool) -> None:
    """Raises UsageError if the file exists and must not be overwritten."""
    try:
        if force:
            write_text(path, text)
        else:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except FileExistsError:
        raise UsageError(f"{path}: exists already; choose another -o, or add --force") from None
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written ({error.strerror}); choose another -o"
        ) from None
