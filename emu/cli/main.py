"""The `emu` command. Each verb is a file beside this one; here their errors become exit codes.

What a user may meet is an EmuError: its text goes to stderr, its exit code to
the caller. Anything else is a fault of ours and shows its traceback.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

import emu
from emu.errors import EmuError, ExitCode

VERBS = (
    "capture",
    "check",
    "compare",
    "down",
    "events",
    "exec",
    "fault",
    "inspect",
    "mn",
    "mpirun",
    "nccl",
    "perf",
    "pingpong",
    "results",
    "run",
    "schema",
    "shell",
    "status",
    "topology",
    "traffic",
    "up",
    "validate",
    "watch",
    "wireshark",
)


class Verbs(click.Group):
    """Imports a verb when it is wanted: plots take a second to load, `emu exec` needs none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command = import_module(f"emu.cli.{name}").command
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "EMU"},
)
@click.version_option(emu.__version__, prog_name="emu")
def cli() -> None:
    """Compare RoCEv2 and InfiniBand fabrics packet by packet, without RDMA hardware."""


def main() -> None:
    """Entry point of the `emu` command."""
    try:
        code = cli.main(standalone_mode=False)
    except EmuError as error:
        click.echo(str(error), err=True)
        code = error.exit_code
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        code = ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = ExitCode.USAGE
    sys.exit(code or ExitCode.OK)


if __name__ == "__main__":
    main()
