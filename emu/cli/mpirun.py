"""`emu mpirun PROGRAM ...`: runs an MPI program across the hosts of a running lab."""

from __future__ import annotations

import sys

import click

from emu.cli.options import lab_option


@click.command("mpirun", context_settings={"allow_interspersed_args": False})
@lab_option
@click.option(
    "-n",
    "ranks",
    type=click.IntRange(min=1),
    metavar="RANKS",
    help="[default: one on every host]",
)
@click.option("--rdma", is_flag=True, help="The ranks use RDMA, by UCX on the hosts' NICs.")
@click.argument("program", metavar="PROGRAM...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(lab: str | None, ranks: int | None, rdma: bool, program: tuple[str, ...]) -> None:
    """Run an MPI PROGRAM on all hosts, e.g. `emu mpirun -n 8 -- python3 all_reduce.py`.

    Its ranks are assigned to the hosts in turn. They use TCP across the fabric, in Ethernet's lossy
    class or on InfiniBand by IPoIB, or RDMA with --rdma. Exits with the program's exit code.
    """
    from emu.daemon.client import LabClient
    from emu.daemon.mpi import mpirun

    with LabClient(lab) as client:
        sys.exit(mpirun(client, ranks, program, rdma=rdma))
