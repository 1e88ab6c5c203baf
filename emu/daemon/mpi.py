"""Runs MPI programs across the hosts of a background lab with Open MPI, as on a cluster.

    emu mpirun ─▶ h1: mpirun ── agent h2 orted ... ─▶ h2: orted ─▶ ranks
                              └ agent h3 orted ... ─▶ h3: orted ─▶ ranks

On a cluster mpirun reaches the other hosts by ssh. Here an agent replaces ssh (`mpi_agent.py`): it
runs in the lab and enters the other host's namespaces. Each host has its own host name there;
with equal names Open MPI would connect the ranks through shared memory. So all messages of ranks
cross the fabric: by TCP, or by UCX on the hosts' NICs, whose verbs library all ranks inherit. What
Open MPI itself says takes the management network where the lab has one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from emu.daemon.client import LabClient
from emu.daemon.exec import nics_in_sysfs, run_in_namespaces, tasks_of
from emu.daemon.mpi_agent import TASKS, TREES, named
from emu.errors import UsageError
from emu.lab import management_network
from emu.lab.command import is_installed, missing_program
from emu.lab.namespace import PRIVATE
from emu.lab.rdma_sysfs.place import tree_of
from emu.spec.scenario import spec_from_json
from topologies.graph import HOST_NETWORK_PREFIX

_AGENT = f"{sys.executable} -m emu.daemon.mpi_agent"
_OPTIONS = (
    *("--allow-run-as-root", "--oversubscribe", "--map-by", "node", "--bind-to", "none"),
    *("--mca", "plm_rsh_agent", _AGENT),
    *("--mca", "plm_rsh_no_tree_spawn", "1"),
    *("--mca", "orte_tmpdir_base", str(PRIVATE)),  # removed with the lab
)
_TCP = (
    *("--mca", "pml", "ob1"),
    *("--mca", "btl", "tcp,self"),
    *("--mca", "btl_tcp_if_include", HOST_NETWORK_PREFIX),
)
_RDMA = (
    *("--mca", "pml", "ucx"),
    *("-x", "UCX_TLS=rc_verbs,ud_verbs,self"),  # UCX takes all hosts for one, with shared memory
    *("-x", "UCX_NET_DEVICES=emu_0:1"),
)


def mpirun(lab: LabClient, ranks: int | None, program: Sequence[str], *, rdma: bool = False) -> int:
    """Runs a program and returns its exit code. Ranks are assigned to the hosts in turn; by default
    every host has one. With `rdma` their messages are RDMA.

    Raises HostError if Open MPI is not installed, UsageError if the hosts lack the IP it needs.
    """
    if not is_installed("mpirun"):
        raise missing_program("mpirun")
    status = lab.status()
    topology = spec_from_json(status.spec).topology.build()
    management = management_network.is_part_of(topology, exact=status.clock == "exact")
    if not status.ip and not management:
        raise UsageError("MPI starts its ranks by TCP, but the hosts have no IP; see `emu status`")
    if not status.ip and not rdma:
        raise UsageError("the fabric carries no IP; use --rdma, or a lab on the real clock")
    hosts = list(topology.host)
    ranks = len(hosts) if ranks is None else ranks
    own = management_network.NETWORK_PREFIX if management else HOST_NETWORK_PREFIX
    options = (*_OPTIONS, "--mca", "oob_tcp_if_include", own, *(_RDMA if rdma else _TCP))
    command = ["mpirun", *options, "-n", str(ranks), "--host", ",".join(hosts), *program]
    trees = {host: str(tree_of(host)) for host in hosts}
    settings = {TASKS: json.dumps(tasks_of(lab)), TREES: json.dumps(trees)}
    with nics_in_sysfs(lab, hosts[1:]):
        return run_in_namespaces(lab, hosts[0], named(hosts[0], command), settings)
