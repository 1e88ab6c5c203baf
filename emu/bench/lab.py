"""The time to bring a lab up and down, from the command to the end of its last process.

It includes everything that a run needs, such as the start of its Python processes, of
Open vSwitch and of all NICs, but no traffic.

Baseline: Mininet's own `net.start()` and `net.stop()` of the same topology in the
same kind of namespaces, with Open vSwitch already running and without `TCLink`s. To
reach with 128 hosts: a quarter of that time.
"""

from __future__ import annotations

import json
import time
from functools import partial

from emu.bench.in_lab import in_lab
from emu.bench.row import Row, Target, side_by_side
from emu.lab import ovs
from emu.lab.command import run
from emu.lab.ipc.codec import message
from emu.lab.ipc.jobs import Job
from emu.lab.ipc.messages import Done
from emu.lab.lab_plan import LabRequest
from emu.lab.session import JobResult, open_session, start
from emu.lab.supervisor import Supervisor
from emu.spec.scenario import spec_from_json
from topologies.mininet_topo import as_mininet

TARGETS = {16: None, 128: Target(0.25, at_most=True)}
_TURNS = 3
_LEAF_SPINE = {16: (2, 2, 8), 128: (4, 8, 16)}
"""Hosts -> spines, leaves, hosts on each leaf."""

_SLOWDOWN = 1000.0


@message
class BuildLab(Job[Done]):
    spec: str
    out: str = "/"


@message
class BuildTime:
    seconds: float


@message
class BuildMininet(Job[BuildTime]):
    spec: str
    out: str = "/"


def measure(*, quick: bool) -> list[Row]:
    return [_row(hosts) for hosts in ((16,) if quick else (16, 128))]


def _row(hosts: int) -> Row:
    spec = lab_spec(hosts)
    emu_seconds, mininet_seconds = [], []
    for _ in range(_TURNS):
        mininet_seconds.append(in_lab(BuildMininet(spec)).seconds)
        began = time.monotonic()
        in_lab(BuildLab(spec))
        emu_seconds.append(time.monotonic() - began)
    return side_by_side(
        f"lab up and down, {hosts} hosts", "s", emu_seconds, mininet_seconds, TARGETS[hosts]
    )


def lab_spec(hosts: int) -> str:
    """A leaf-spine fabric with a little traffic, which is never started."""
    spines, leaves, hosts_per_leaf = _LEAF_SPINE[hosts]
    topology = {
        "kind": "leaf-spine",
        "spines": spines,
        "leaves": leaves,
        "hosts_per_leaf": hosts_per_leaf,
    }
    traffic = {"name": "flow", "pattern": "pair", "from": "h1", "to": "h2", "size": "1MB"}
    return json.dumps({"name": "bench", "plane": "ovs", "topology": topology, "traffic": [traffic]})


def lab(job: BuildLab, supervisor: Supervisor) -> JobResult:
    """Builds a complete lab and starts its NICs and switches, without traffic."""
    request = LabRequest(spec_from_json(job.spec), job.out, _SLOWDOWN, workload=True)
    start(open_session(request, supervisor))
    return Done(), []


def mininet(job: BuildMininet, supervisor: Supervisor) -> JobResult:
    """The seconds that Mininet needs to start and stop."""
    from mininet.log import setLogLevel
    from mininet.net import Mininet
    from mininet.node import OVSSwitch

    setLogLevel("error")
    ovs.start_database(supervisor)
    run(["ovs-vsctl", "--no-wait", "init"])
    ovs.start_switches(supervisor, punctual=True)
    topology = spec_from_json(job.spec).topology.build()
    switch = partial(OVSSwitch, datapath="user", failMode="standalone")
    net = Mininet(topo=as_mininet(topology), controller=None, switch=switch, build=False)
    began = time.monotonic()
    net.start()
    net.stop()
    return BuildTime(time.monotonic() - began), []
