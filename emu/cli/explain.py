"""`emu explain KEY`: explains keys of a spec, presets, counters, checks, faults and others."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import click

from emu.cli.options import json_option, settings_option
from emu.errors import UsageError

SCHEMA = "emu.explain/1"
_WIDEST = 100


@click.command("explain")
@click.argument("words", metavar="[KEY | KIND NAME]", nargs=-1)
@click.option(
    "--spec",
    "path",
    type=click.Path(path_type=Path),
    help="Also show the value of KEY that is in force in this spec, and where it comes from.",
)
@click.option("--variant", metavar="NAME", help="With --spec: in this variant of its `compare:`.")
@settings_option
@json_option
def command(
    words: tuple[str, ...],
    path: Path | None,
    variant: str | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Explain a key of a spec: its meaning, unit, default with the reason, and source.

    \b
    emu explain                            all sections of a spec
    emu explain switches.pfc               a section, and the keys in it
    emu explain switches.pfc.xoff          one key
    emu explain kmin                       every key of that name
    emu explain rx_prio3_pause_duration    a counter
    emu explain preset sonic               KIND NAME; kinds are preset, counter,
    emu explain diagnosis pause storm      check, fault, diagnosis and field
    emu explain field flows.end_ns         (of summary.json)
    emu explain switches.ecn --spec my.emu.yml
    """
    from emu.explain.text import lines_of, lines_of_values
    from emu.explain.topics import look_up, overview

    if path is None and (variant or settings):
        raise UsageError(f"{'--variant' if variant else '--set'} needs --spec FILE")
    values = []
    if path is not None:
        from emu.explain.in_force import OpenSpec

        spec = OpenSpec(path, settings, variant)
        topics = look_up(spec.by_pattern(words)) if words else overview()
        values = spec.values(words)
    else:
        topics = look_up(words) if words else overview()
    if as_json:
        document = {"topics": list(map(asdict, topics)), "in_force": list(map(asdict, values))}
        click.echo(json.dumps({"schema": SCHEMA, **document}, indent=2, ensure_ascii=False))
        return
    lines = list(lines_of(topics, min(_WIDEST, shutil.get_terminal_size().columns)))
    if values:
        lines += ["", *lines_of_values(values, str(path))]
    click.echo("\n".join(lines))
