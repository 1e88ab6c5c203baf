"""The `emu` command. Each verb is a file beside this one; here their errors become exit codes.

What a user may meet is an EmuError: its text goes to stderr, its exit code to
the caller. Anything else is a fault of ours and shows its traceback.
"""

from __future__ import annotations

import sys

import click

import emu
from emu.cli import check, compare, inspect, results, run, schema, shell, validate
from emu.errors import EmuError, ExitCode


@click.group(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "EMU"})
@click.version_option(emu.__version__, prog_name="emu")
def cli() -> None:
    """Compare RoCEv2 and InfiniBand fabrics packet by packet, without RDMA hardware."""


for verb in (check, compare, inspect, results, run, schema, shell, validate):
    cli.add_command(verb.command)


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
