"""`emu inspect CAPTURE`: counts the packets of a capture and checks their checksums."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from emu.cli.options import json_option
from emu.units import format_size, format_time_ns
from emu.wire.inspect import inspect
from emu.wire.inspection import Inspection

_FLOWS_SHOWN = 20

Row = tuple[str, str]


@click.command(name="inspect")
@click.argument("capture", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def command(capture: Path, as_json: bool) -> None:
    """Count the packets in CAPTURE and check ICRCs and VCRCs, which Wireshark does not.

    CAPTURE is a pcap, pcapng or ERF file, from this emulator or from real hardware.
    """
    found = inspect(capture)
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=2))
        return
    _print([(title, list(rows)) for title, rows in _sections(found)])
    if found.damage:
        click.echo(f"{capture}: {found.damage}; counted up to there", err=True)


def _print(sections: Iterable[tuple[str, list[Row]]]) -> None:
    """Prints a table on a terminal; elsewhere lines with section, name and value, tab-separated."""
    console = Console()
    table = Table.grid("", "", "", padding=(0, 2))
    for title, rows in sections:
        for place, (name, value) in enumerate(rows):
            if console.is_terminal:
                heading = Text(title if place == 0 else "", style="bold")
                table.add_row(heading, Text(name), Text(value, justify="right"))
            else:
                click.echo(f"{title}\t{name}\t{value}")
    if console.is_terminal:
        console.print(table)


def _sections(found: Inspection) -> Iterable[tuple[str, Iterable[Row]]]:
    yield "capture", _capture(found)
    yield "interface", _counted(found.interfaces)
    yield "carrier", _counted(found.carriers)
    yield "opcode", _counted(found.opcodes)
    yield "checksum", _checksums(found)
    yield "ecn", _counted(found.ecn)
    yield "acknowledgement", _counted(found.acknowledgements)
    yield "pause", _pauses(found)
    yield "credit updates", _counted(found.credit_updates)
    yield "psn", _psns(found)
    yield "peculiar", _peculiar(found)
    yield "other frames", _counted(found.other)


def _capture(found: Inspection) -> Iterable[Row]:
    yield "file", found.path.name
    yield "frames", f"{found.frames:,}"
    yield "bytes", format_size(found.bytes)
    if found.first_ns is not None and found.last_ns is not None:
        yield "duration", format_time_ns(found.last_ns - found.first_ns)


def _counted(counts: Mapping[str, int]) -> Iterable[Row]:
    return ((name, f"{count:,}") for name, count in counts.items() if count)


def _checksums(found: Inspection) -> Iterable[Row]:
    for name, verdicts in (("ICRC", found.icrc), ("VCRC", found.vcrc), ("LPCRC", found.lpcrc)):
        for verdict, count in verdicts.to_json().items():
            if count:
                yield f"{name} {verdict}", f"{count:,}"


def _pauses(found: Inspection) -> Iterable[Row]:
    if found.pause_frames:
        yield "frames", f"{found.pause_frames:,}"
    for name in sorted({*found.xoff, *found.xon}):
        yield f"{name} XOFF", f"{found.xoff[name]:,}"
        yield f"{name} XON", f"{found.xon[name]:,}"


def _psns(found: Inspection) -> Iterable[Row]:
    """Totals, and the flows with gaps or repeats."""
    if not found.flows:
        return
    gaps, missing, repeats = found.psn_totals()
    yield "flows", f"{len(found.flows):,}"
    yield "gaps", f"{gaps:,} ({missing:,} missing)" if gaps else "0"
    yield "repeats", f"{repeats:,}"
    disturbed = [
        (key, sequence)
        for key, sequence in found.flows.items()
        if sequence.gaps or sequence.repeats
    ]
    for key, sequence in disturbed[:_FLOWS_SHOWN]:
        yield (
            f"{key.src} > {key.dst} QP 0x{key.dest_qp:06x} {key.interface}".rstrip(),
            f"{sequence.packets:,} packets, {sequence.gaps:,} gaps, {sequence.repeats:,} repeats",
        )
    if len(disturbed) > _FLOWS_SHOWN:
        yield "more such flows (--json has them all)", f"{len(disturbed) - _FLOWS_SHOWN:,}"


def _peculiar(found: Inspection) -> Iterable[Row]:
    return _counted(
        {
            "truncated frames": found.truncated,
            "VLAN tagged": found.vlan_tagged,
            "VLAN tagged twice or more": found.vlan_stacked,
            "IP options": found.ip_options,
            "UDP source port below 49152": found.low_source_ports,
            "fragments": found.fragments,
        }
    )
