"""The `emu` command. Each verb is a file in this folder; this file maps errors to exit codes.

Errors that a user may see are EmuErrors: the text goes to stderr, the exit code to the caller. So
are limits of the machine, and output that cannot be written. Any other exception is a bug in the
emulator: it prints a traceback and exits with 4.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from keyword import iskeyword

import click

import emu
import emu.quick_imports
from emu.errors import EmuError, ExitCode, UsageError
from emu.mpi_environment import mpi_rank, mpi_ranks, ranks_of_mpich
from emu.resources import exhausted_resource, need_memory
from emu.streams import guard_streams

VERBS = {
    "bench-report": "Report the KPIs of the IETF BMWG drafts for AI fabrics.",
    "capture": "Capture the cable in a port, in both directions, until Ctrl-C.",
    "check": "Check this machine for what labs need.",
    "compare": "Run every variant of a spec and compare the results.",
    "continue": "Let the paused time of a lab go on.",
    "convergence": "Measure how long failures cost traffic, by control plane.",
    "counters": "Print the counters of a lab by port and NIC.",
    "decide": "Compare fabrics for a workload, and recommend one.",
    "down": "End a lab.",
    "events": "Print the events in a lab from now on.",
    "exec": "Run a command on a host or switch of a lab.",
    "explain": "Explain a key, counter, preset or check.",
    "export": "Write a spec's switches as SONiC configurations.",
    "fault": "Inject faults into a running lab, and clear them.",
    "import": "Make a spec of SONiC or containerlab files.",
    "init": "Write a commented spec for a fabric described by options.",
    "inspect": "Count the packets in a capture and check ICRCs and VCRCs.",
    "mn": "",
    "mpirun": "Run an MPI program on all hosts of a lab.",
    "nccl": "Collectives over a range of sizes, printed as nccl-tests does.",
    "pause": "Stop the emulated time of a lab on the exact clock.",
    "perf": "Measure one pair of hosts as perftest would.",
    "pingpong": "Exchange messages with Linux' ibv_rc_pingpong.",
    "reachability": "Measure who can reach whom on the management network.",
    "results": "Run the specs of a folder and judge them by their checks.",
    "run": "Run a spec and report the results.",
    "schema": "Print the JSON schema of spec files, with every key.",
    "sensitivity": "Measure what settings, mistakes and failures cost.",
    "shell": "Open Mininet's prompt: h1 ping h5, net, help.",
    "status": "Show the running labs and the state of their traffic.",
    "step": "Let a lab's emulated time pass by so much, and pause it.",
    "sweep": "Run a spec at many points, and show what changes.",
    "topology": "Read or write fabrics of other programs.",
    "traffic": "Start or stop the traffic of a running lab.",
    "tune": "Search settings that reach goals, and judge them.",
    "up": "Bring up a fabric and leave it running until `emu down`.",
    "validate": "Check a spec file.",
    "watch": "Show a lab's rates, queues, pauses and marks by port.",
    "wireshark": "Install a profile and running labs' cables for Wireshark.",
}
"""Each verb, and its line in `emu --help`; a verb without a line is not listed."""


class Verbs(click.Group):
    """Imports a verb only when it is used, because some take a second to import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """A placeholder for lists of verbs; `resolve_command` imports the command."""
        line = VERBS.get(name)
        return None if line is None else click.Command(name, short_help=line, hidden=not line)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _refuse_ranks(name)
            need_memory()
            command = command_of(command.name or "")
        return name, command, rest


_OVER_RANKS = {"run", "compare"}
"""Verbs that several processes can share."""


def _refuse_ranks(verb: str | None) -> None:
    """Raises UsageError for verbs that several processes cannot share, once."""
    if mpi_ranks() == 1 and ranks_of_mpich() > 1:
        raise UsageError(
            "mpiexec: MPICH started this process, and emu runs over several processes by Open MPI "
            "alone; use its mpirun (apt install openmpi-bin)"
        )
    if mpi_ranks() == 1 or verb in _OVER_RANKS:
        return
    if mpi_rank() > 0:
        sys.exit(ExitCode.USAGE)
    raise UsageError(
        f"mpirun: `emu {verb}` does not run over several processes; leave mpirun out, or use "
        "`emu run` or `emu compare`"
    )


def command_of(verb: str) -> click.Command:
    """The command of a verb. Its file has underscores for dashes, and one at the end if the verb is
    a keyword of Python."""
    name = verb.replace("-", "_")
    command = import_module(f"emu.cli.{name}_" if iskeyword(name) else f"emu.cli.{name}").command
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
    guard_streams()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each further one takes 32 MB
    code = _run(lambda: cli.main(standalone_mode=False))
    not_printed = _run(sys.stdout.flush)
    gc.freeze()  # skip the last search for cycles, which takes longer than a small run
    sys.exit(code or not_printed)


def _run(work: Callable[[], int | None]) -> int | str | None:
    """Does the work and returns the exit code. Prints errors to stderr."""
    try:
        return work()
    except SystemExit as end:
        return end.code
    except EmuError as error:
        click.echo(str(error), err=True)
        return error.exit_code
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        if mpi_rank() == 0:  # the others were given the same
            error.show()
        return ExitCode.USAGE
    except Exception as error:
        exhausted = exhausted_resource(error)
        if exhausted is not None:
            click.echo(str(exhausted), err=True)
            return exhausted.exit_code
        traceback.print_exc()  # Python would exit with 1, the code of a failed check
        click.echo("this is a bug in `emu`; please report the traceback above", err=True)
        return ExitCode.FAILED


if __name__ == "__main__":
    main()
