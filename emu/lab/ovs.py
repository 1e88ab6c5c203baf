"""A lab's own Open vSwitch: two daemons, one transaction, one bundle per switch.

Nothing is shared with an Open vSwitch of the machine: database, sockets and logs
lie in the lab's private /run. The daemons detach, because that is how they tell
that they are ready; then the lab's first process is their parent.

The datapath is the userspace one. Its usual kind, `netdev`, makes a tap device
for every bridge and so needs /dev/net/tun, which is root's alone on machines
without udev. Where it may not be opened we take `dummy`, the same datapath with
local ports that do nothing; ours never do.

Under the kernel's RED it is the kernel's. What the userspace one sends counts
against its socket's buffer for as long as it waits in a queue of the kernel: some
25 packets, then it would lose them.

`ovs-vswitchd` keeps its memory locked, where it may: a page to be fetched again
would delay a frame. Locked are its threads' stacks too, to their end; so they are
2 MB and not the usual 8, as in Open vSwitch's own unit for systemd. And malloc
keeps what was freed: Open vSwitch takes memory for 32 frames whenever it looks for
some, and at our MTU that is just what malloc would give back to the kernel each
time, for four page faults a frame.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from emu.lab.command import run
from emu.lab.namespace import PRIVATE
from emu.lab.routes import RouteTable
from emu.lab.rt_sched import run_before_others
from emu.lab.supervisor import Supervisor
from topologies.graph import Switch, Topology

FOLDER = PRIVATE / "openvswitch"
_SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
_DATABASE = FOLDER / "conf.db"
_SOCKET = FOLDER / "db.sock"
_TUN = Path("/dev/net/tun")
_QUIET = ("-vconsole:off", "--log-file")
_LOCKED = (
    *("env", f"MALLOC_TRIM_THRESHOLD_={1 << 30}", f"MALLOC_TOP_PAD_={1 << 22}"),
    *("prlimit", f"--stack={1 << 21}:", "--"),
)
"""Runs the command after it with memory fit to be locked."""
_LOADERS = 4
"""More of them would only wait for `ovs-vswitchd`."""


KERNEL_DATAPATH = "system"


def datapath_type() -> str:
    """The userspace one: `netdev`, or `dummy` where this user may not make tap devices."""
    return "netdev" if os.access(_TUN, os.R_OK | os.W_OK) else "dummy"


def start_database(supervisor: Supervisor) -> None:
    """Starts `ovsdb-server` on an empty database; returns when it serves."""
    FOLDER.mkdir()
    os.environ.update(OVS_RUNDIR=str(FOLDER), OVS_DBDIR=str(FOLDER), OVS_LOGDIR=str(FOLDER))
    run(["ovsdb-tool", "create", str(_DATABASE), str(_SCHEMA)])
    _start_daemon(supervisor, "ovsdb-server", [f"--remote=punix:{_SOCKET}", str(_DATABASE)])


def start_switches(supervisor: Supervisor) -> int:
    """Starts `ovs-vswitchd`, whose bridges all work when this returns; its process."""
    options = ["--enable-dummy", "--mlockall", f"unix:{_SOCKET}"]
    pid = _start_daemon(supervisor, "ovs-vswitchd", options, within=_LOCKED)
    run_before_others(pid)
    return pid


def define_bridges(transaction: Sequence[str]) -> None:
    """Writes what `bridge_transaction` returned to the database, before anyone acts on it."""
    run(["ovs-vsctl", "--no-wait", *transaction])


def load_routes(tables: Sequence[RouteTable]) -> None:
    """Gives every switch its table, several at a time."""
    with ThreadPoolExecutor(_LOADERS) as pool:
        for _ in pool.map(_load, tables):
            pass


def _load(table: RouteTable) -> None:
    """Gives a switch its table, all of it or nothing."""
    load_lines(table.switch, table.lines())


def load_lines(switch: str, lines: Iterable[str]) -> None:
    """Changes a switch's table by the lines of a bundle, all of them or none."""
    bundle = "".join(f"{line}\n" for line in lines)
    run(["ovs-ofctl", "--protocols=OpenFlow15", "bundle", switch, "-"], stdin=bundle)


def bridge_transaction(topology: Topology, datapath: str) -> list[str]:
    """The arguments of the one `ovs-vsctl` that makes all bridges and ports of a fabric.

    OpenFlow's port numbers are ours, and a datapath id is the switch's index.
    `emc-insert-inv-prob=0`: the transit tag makes every packet's key new, so
    caching by exact match would only cost.
    """
    words = ["init", "--", "set", "Open_vSwitch", ".", "other_config:emc-insert-inv-prob=0"]
    for switch in topology.switches:
        words += _bridge(switch, datapath)
        for port in topology.ports[switch.name]:
            words += ["--", "add-port", switch.name, port.interface]
            words += ["--", "set", "Interface", port.interface, f"ofport_request={port.number}"]
    return words


def _bridge(switch: Switch, datapath: str) -> list[str]:
    return [
        *("--", "add-br", switch.name),
        *("--", "set", "Bridge", switch.name, f"datapath_type={datapath}", "fail_mode=secure"),
        f"other_config:datapath-id={switch.index:016x}",
    ]


def _start_daemon(
    supervisor: Supervisor, name: str, arguments: Sequence[str], *, within: Sequence[str] = ()
) -> int:
    """Starts a daemon, which is ready when this returns; its process.

    `within` is a command that runs the command after it.
    """
    run([*within, name, *_QUIET, "--detach", "--no-chdir", "--pidfile", *arguments])
    pid = int((FOLDER / f"{name}.pid").read_text())
    supervisor.adopt(name, pid)
    return pid
