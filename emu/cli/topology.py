"""`emu topology import FILE`, `emu topology export SPEC`: reads and writes fabrics of other
programs."""

from __future__ import annotations

from pathlib import Path

import click

from emu.cli.notes import print_note
from emu.cli.options import settings_option, spec_argument
from emu.errors import UsageError
from emu.regular import read_regular
from emu.spec.model import load_spec, spec_from_text
from emu.subnet.netfile import approximated, net_file
from emu.units import write_rate
from topologies.graph import Topology
from topologies.text import hpcc, ibnetdiscover

LONGEST_BYTES = 16_000_000
"""The largest text that is read; thousands of nodes take much less."""
_READERS = {"hpcc": hpcc.read, "ibnetdiscover": ibnetdiscover.read}
_WRITERS = {"hpcc": hpcc.write, "ibnetdiscover": ibnetdiscover.write, "ibsim": net_file}


@click.group("topology")
def command() -> None:
    """Read a fabric that another program wrote, or write one that it can read."""


@command.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", *_READERS]),
    default="auto",
    help="ibnetdiscover: also ibsim's net files. hpcc: HPCC's ns-3 topology text.",
)
def import_(file: Path, form: str) -> None:
    """Print a spec with the topology in FILE; you add the traffic."""
    text = _read(file)
    if form == "auto":
        form = "hpcc" if hpcc.recognises(text) else "ibnetdiscover"
    section = _READERS[form](text, str(file)).section()
    spec = spec_from_text(section.encode(), source=f"{file} as a spec")
    for tier, switches in _tiers(spec.topology.build()).items():
        click.echo(f"# {tier}, as `switches.roles` knows it: {', '.join(switches)}")
    click.echo(section, nl=False)


@command.command("export")
@spec_argument
@settings_option
@click.option(
    "--format", "form", type=click.Choice(list(_WRITERS)), required=True, help="Format to write."
)
def export(path: Path, settings: tuple[str, ...], form: str) -> None:
    """Print the fabric of a spec in another program's format."""
    topology = load_spec(path, settings).topology.build()
    click.echo(_WRITERS[form](topology), nl=False)
    for rate_bps, name in approximated(topology).items() if form == "ibsim" else ():
        print_note(f"{write_rate(rate_bps)}: ibsim has no such rate; the file has {name} instead")


def _tiers(topology: Topology) -> dict[str, list[str]]:
    tiers: dict[str, list[str]] = {}
    for switch, (tier, *_) in topology.roles.items():
        tiers.setdefault(tier, []).append(switch)
    return dict(sorted(tiers.items()))


def _read(file: Path) -> str:
    try:
        return read_regular(file, LONGEST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"{file}: cannot be read ({why})") from None
