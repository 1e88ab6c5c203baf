"""The lab that a program owns: it ends with the program in any case.

It lends a socket for each host, opened in the host's namespace. Registered memory is therefore the
program's own, and is not copied to another process.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from emu.daemon import registry
from emu.daemon.client import LabClient
from emu.daemon.messages import BorrowNic, GetPathLevels
from emu.errors import FabricError, UsageError
from emu.lab.ipc.jobs import ServeLab
from emu.lab.namespace import run_in_lab
from emu.runtime.runner import ignore
from emu.subnet.subnet import PathSLs, Subnet
from topologies.graph import Topology


@dataclass(frozen=True)
class HostSockets:
    """Every host's socket and interface index, and the subnet manager's decisions."""

    hosts: dict[str, tuple[socket.socket, int]]
    subnet: Subnet | None
    levels: Callable[[], PathSLs] = dict
    """Returns the service levels in the present path records."""


@dataclass
class OwnLab:
    """A running lab that this process owns."""

    name: str
    ended: int
    """A descriptor that becomes readable when the lab ends."""
    why_ended: Exception | None = None
    """Why it has ended, unless this process ended it."""


@contextmanager
def own_lab(job: ServeLab) -> Iterator[OwnLab]:
    """Keeps a lab up while the body runs. A thread of this process owns it, so that it ends with
    the process in any case. Raises UsageError, HostError, FabricError."""
    up, lab = threading.Event(), OwnLab(job.name, os.eventfd(0, os.EFD_NONBLOCK))

    def own() -> None:
        """Runs the lab, then closes the listener, so that later calls to the lab fail at once."""
        try:
            run_in_lab(job, on_progress=ignore, on_up=up.set, files=[listener.fileno()])
        except KeyboardInterrupt:
            why = "its first process received SIGINT or SIGTERM"
            lab.why_ended = FabricError(f"the lab {lab.name} has ended: {why}")
        except Exception as error:
            lab.why_ended = error
        finally:
            listener.close()
            os.eventfd_write(lab.ended, 1)
            up.set()

    with ExitStack() as stack:
        stack.callback(os.close, lab.ended)
        owner = threading.Thread(target=own, name="lab", daemon=True)
        listener = registry.claim(lab.name)
        stack.callback(registry.release, lab.name)
        stack.callback(listener.close)
        owner.start()
        up.wait()
        if lab.why_ended is None:
            try:
                yield lab
            finally:
                _end(lab.name, owner)
        if lab.why_ended is not None:
            raise lab.why_ended


def _end(name: str, owner: threading.Thread) -> None:
    """Ends the lab, unless it has ended already, and waits for its thread."""
    with suppress(UsageError):  # the lab has just ended
        if owner.is_alive():
            with LabClient(name) as lab:
                lab.end()
    owner.join()


def borrow_nics(lab: LabClient, topology: Topology) -> HostSockets:
    """The sockets of all hosts. Raises UsageError if the lab does not lend them."""
    hosts, subnet = {}, None
    with ExitStack() as unless_all:
        for host in topology.host:
            nic, (file,) = lab.ask(BorrowNic(host))
            opened = unless_all.enter_context(socket.socket(fileno=file))
            hosts[host] = opened, nic.ifindex
            subnet = nic.subnet
        unless_all.pop_all()
    if subnet is None:
        return HostSockets(hosts, None)
    return HostSockets(hosts, subnet, lambda: lab.ask(GetPathLevels())[0].levels)
