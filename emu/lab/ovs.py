"""A lab's own Open vSwitch: two daemons, one transaction, one bundle for each switch.

It shares nothing with an Open vSwitch of the machine: database, sockets and logs are in the lab's
own /run. The daemons detach when they are ready; the lab's first process is their parent then.

Switches use the userspace datapath. Its usual type, `netdev`, makes a tap device for every bridge
and so needs /dev/net/tun, which only root may open on machines without udev. If this user may not,
the type is `dummy`: the same datapath with local ports that do nothing. A lab does not use local
ports.

With the kernel's RED, switches use the kernel's datapath. Packets that the userspace datapath sends
count against its socket's buffer while they wait in a qdisc; it would drop packets after some 25.

`ovs-vswitchd` locks its memory, if permitted, because a page fault would delay a frame. Locking
includes its threads' whole stacks, so they are 2 MB instead of the usual 8, as in Open vSwitch's
systemd unit. malloc is set to keep freed memory: Open vSwitch allocates memory for 32 frames at
each poll, and at a lab's MTU malloc would return it to the kernel each time, for four page faults
a frame.

Each time it wakes it reads all ports of all switches. A library that it loads first answers for
the ports that have nothing (`ovs_idle_ports.c`), and keeps that memory at hand
(`ovs_packet_memory.c`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from emu.errors import HostError
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
_KEEPS_MEMORY = (f"MALLOC_TRIM_THRESHOLD_={1 << 30}", f"MALLOC_TOP_PAD_={1 << 22}")
"""Settings of malloc."""
_SMALL_STACKS = ("prlimit", f"--stack={1 << 21}:", "--")
_PRELOAD = Path(__file__).with_name("ovs_preload.so")
_LOADERS = 4
"""The number of threads that load routes; more would only wait for `ovs-vswitchd`."""


KERNEL_DATAPATH = "system"


def datapath_type() -> str:
    """The userspace datapath's type: `netdev`, or `dummy` if this user may not make tap devices."""
    return "netdev" if os.access(_TUN, os.R_OK | os.W_OK) else "dummy"


def start_database(supervisor: Supervisor) -> None:
    """Starts `ovsdb-server` on an empty database. Returns when it is ready."""
    FOLDER.mkdir()
    os.environ.update(OVS_RUNDIR=str(FOLDER), OVS_DBDIR=str(FOLDER), OVS_LOGDIR=str(FOLDER))
    run(["ovsdb-tool", "create", str(_DATABASE), str(_SCHEMA)])
    _start_daemon(supervisor, "ovsdb-server", [f"--remote=punix:{_SOCKET}", str(_DATABASE)])


def start_switches(supervisor: Supervisor, *, punctual: bool) -> int:
    """Starts `ovs-vswitchd` and returns its pid. All bridges work then.

    `punctual`: its memory stays in place, and it runs before other processes.
    """
    options = ["--enable-dummy", f"unix:{_SOCKET}"]
    within = ["env", *_KEEPS_MEMORY, f"LD_PRELOAD={_preload()}"]
    if not punctual:
        return _start_daemon(supervisor, "ovs-vswitchd", options, within=within)
    within += _SMALL_STACKS
    pid = _start_daemon(supervisor, "ovs-vswitchd", ["--mlockall", *options], within=within)
    run_before_others(pid)
    return pid


def _preload() -> Path:
    """The library that `ovs-vswitchd` loads first, by a path without spaces: LD_PRELOAD ends there.

    Raises HostError when it has not been built.
    """
    if not _PRELOAD.exists():
        raise HostError(f"{_PRELOAD} has not been built", remedy="python -m emu._build")
    link = FOLDER / _PRELOAD.name
    link.symlink_to(_PRELOAD)
    return link


def define_bridges(transaction: Sequence[str]) -> None:
    """Writes the result of `bridge_transaction` to the database, before `ovs-vswitchd` starts."""
    run(["ovs-vsctl", "--no-wait", *transaction])


def load_routes(tables: Sequence[RouteTable]) -> None:
    """Loads the tables of all switches, several at a time."""
    with ThreadPoolExecutor(_LOADERS) as pool:
        for _ in pool.map(_load, tables):
            pass


def _load(table: RouteTable) -> None:
    """Loads the table of a switch, all lines or none."""
    load_lines(table.switch, table.lines())


def load_lines(switch: str, lines: Iterable[str]) -> None:
    """Applies a bundle to a switch's table, all lines or none."""
    bundle = "".join(f"{line}\n" for line in lines)
    run(["ovs-ofctl", "--protocols=OpenFlow15", "bundle", switch, "-"], stdin=bundle)


def bridge_transaction(topology: Topology, datapath: str) -> list[str]:
    """The arguments of the one `ovs-vsctl` that makes all bridges and ports of a fabric.

    OpenFlow port numbers are the topology's, and a datapath id is the switch's index.
    `emc-insert-inv-prob=0`: the transit tag makes every packet's key unique, so the exact
    match cache would only cost time.
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
    """Starts a daemon and returns its pid when it is ready.

    `within`: a prefix for the command.
    """
    run([*within, name, *_QUIET, "--detach", "--no-chdir", "--pidfile", *arguments])
    pid = int((FOLDER / f"{name}.pid").read_text())
    supervisor.watch_child(name, pid)
    return pid
