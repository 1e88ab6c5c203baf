"""docs/reference/cli.md: every command with its arguments and options, as `--help` has them."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc

import click

from emu.cli.main import VERBS, command_of
from emu.errors import ExitCode
from emu.explain.pages import head, table

_MEANING = {
    ExitCode.OK: "everything held",
    ExitCode.CHECK_FAILED: "a check of the spec failed",
    ExitCode.USAGE: "wrong options, or a mistake in the spec",
    ExitCode.HOST: "the machine lacks something",
    ExitCode.FAILED: "the run failed",
    ExitCode.INCONCLUSIVE: "the machine could not keep up: the figures mean nothing",
    ExitCode.INTERRUPTED: "interrupted",
}


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from head(
        "Commands and their options",
        "Every command of `emu`, as `emu COMMAND --help` prints it. An option can also be set by "
        "an environment variable: `EMU_RUN_CLOCK` is that of `emu run --clock`.",
    )
    yield from ("", "With `--json`, stdout is one JSON document and nothing else.")
    yield from ("", "## Exit codes")
    yield from table(("code", "meaning"), [(str(int(c)), _MEANING[c]) for c in ExitCode])
    for verb, line in VERBS.items():
        if line:
            command = command_of(verb)
            yield from _command(command, f"emu {verb}")


def _command(command: click.Command, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield from (
        "",
        f"## {name}",
        "",
        f"    {name} {' '.join(command.collect_usage_pieces(context))}",
    )
    yield from ("", _text(command))
    options = [
        (", ".join(f"`{part}`" for part in record[0].split(", ")), record[1])
        for option in command.get_params(context)
        if (record := option.get_help_record(context)) and record[1] and "--help" not in option.opts
    ]
    if options:
        yield from table(("option", "meaning"), options)
    if isinstance(command, click.Group):
        for sub in command.commands.values():
            yield from _command(sub, f"{name} {sub.name}")


def _text(command: click.Command) -> str:
    """The text of `--help`. click's mark for text that keeps its lines becomes a code block."""
    paragraphs = cleandoc(command.help or command.short_help or "").split("\n\n")
    return "\n\n".join(_paragraph(paragraph) for paragraph in paragraphs)


def _paragraph(text: str) -> str:
    if text.startswith("\b"):
        return "\n".join(f"    {line}" for line in text.splitlines()[1:])
    return text
