"""`emu exec NODE COMMAND ...`: runs a program in a node of a running lab."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from emu.cli.notes import TIME_OF_PROGRAMS_IN_EXACT_LABS, print_note, time_of_programs
from emu.cli.options import lab_option
from emu.clocks import EXACT
from emu.errors import UsageError
from emu.spec import management_names

if TYPE_CHECKING:
    from emu.daemon.messages import Status


@click.command("exec", context_settings={"allow_interspersed_args": False})
@lab_option
@click.option(
    "--emulated",
    is_flag=True,
    help="Give COMMAND the fabric's clock (by libfaketime): rates and times that it shows are the "
    "fabric's.",
)
@click.option(
    "--no-rdma",
    is_flag=True,
    help="Leave out the host's RDMA NIC: COMMAND sees /sys as the kernel shows it.",
)
@click.option(
    "--management",
    is_flag=True,
    help="Run COMMAND on NODE's interface in the management network, apart from the fabric.",
)
@click.argument("node")
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    lab: str | None,
    emulated: bool,
    no_rdma: bool,
    management: bool,
    node: str,
    words: tuple[str, ...],
) -> None:
    """Run COMMAND on the host or switch NODE, e.g. `emu exec h1 -- ping -c 3 h5`.

    Hosts can use each other's names; on a switch COMMAND can use Open vSwitch.
    InfiniBand's tools (ibnetdiscover, perfquery, ...) see the fabric from either.
    On a host COMMAND sees the emulated RDMA NIC, emu_0, in /sys/class/infiniband.
    With `management: on` in the spec, NODE may be mgmt, the place of collectors, and --management
    runs COMMAND where NODE's management processor would: `emu exec --management leaf1 -- ss -lt`.
    Exits with COMMAND's exit code. COMMAND measures real time; on a terminal, a line explains
    how to convert it to emulated time.

    With --emulated COMMAND has an emulated clock: one second takes as many seconds as the
    slowdown. Both ends of a measurement need it:

    \b
    emu exec --emulated h5 -- iperf3 -s -1
    emu exec --emulated h1 -- iperf3 -c h5 -n 50M -i 0

    Times that the kernel measures stay real: TCP's timeouts and round trips, the times of packets.
    Programs that show them (ping, tcpdump, iperf3 -J) are refused, and so are programs that ignore
    libfaketime (static ones, those in Go, those with more rights than you). The time of day
    differs between programs; only durations can be compared.
    """
    from emu.daemon.client import LabClient
    from emu.daemon.exec import run_in_namespaces, tasks_of
    from emu.daemon.messages import RunTool
    from emu.subnet.programs import DIAGNOSTICS, READ_SYSFS

    program = words[1:] if words[0] == "--" else words
    if not program:
        raise UsageError("no command; write it like: emu exec h1 -- ping -c 3 h5")
    with LabClient(lab) as client:
        settings: Mapping[str, str] = {}
        management = management or node in management_names.NODES
        if emulated and management:
            raise UsageError(
                "--emulated: the management network lives in real time; leave --emulated out"
            )
        if emulated:
            settings = _emulated(program, client.status())
        elif sys.stderr.isatty() and not management:
            print_note(_about_time(client.status()))
        reads_sysfs = program[0] in READ_SYSFS and not no_rdma and node in tasks_of(client)
        if program[0] in DIAGNOSTICS and not reads_sysfs and not management:
            output, _ = client.ask(RunTool(node, tuple(program)))
            click.echo(output.text, nl=False)
            sys.exit(output.code)
        code = run_in_namespaces(
            client, node, program, settings, rdma=not no_rdma, management=management
        )
        sys.exit(code)


def _about_time(status: Status) -> str:
    if status.clock == EXACT.name:
        return TIME_OF_PROGRAMS_IN_EXACT_LABS
    return time_of_programs(status.slowdown)


def _emulated(program: Sequence[str], status: Status) -> Mapping[str, str]:
    """The variables that give a program an emulated clock. Raises UsageError, HostError."""
    from emu.lab.emulated_time import emulated_time
    from emu.subnet.programs import DIAGNOSTICS

    if program[0] in DIAGNOSTICS:
        raise UsageError(f"--emulated {program[0]}: it measures no times; leave --emulated out")
    if status.clock == EXACT.name:
        raise UsageError(
            f"--emulated: the time of the lab {status.name} passes only while frames are on the "
            "way. Programs with RDMA verbs follow it: leave --emulated out. For others bring the "
            "lab up with --clock real"
        )
    slowdown = status.slowdown
    settings = emulated_time(program, slowdown)
    print_note(
        f"times and rates are the fabric's: one second of {program[0]} takes {slowdown:g} s; "
        "TCP's own timeouts stay real"
    )
    return settings
