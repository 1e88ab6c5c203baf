"""Carries out network steps by rtnetlink.

    steps of one namespace ──▶ requests, many in one message ──▶ kernel ──▶ an answer each

pyroute2 encodes the requests (`net_requests`) and decodes the answers. The socket is a plain one,
because each host's namespace needs one, for about a millisecond.

Source: Linux, Documentation/userspace-api/netlink/intro.rst.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from emu.errors import EmuError, FabricError, HostError
from emu.lab import tun
from emu.lab.net_requests import request
from emu.lab.net_steps import AddTun, AddVeth, AttachClsact, AttachEgressFilter, NetStep
from emu.lab.netns import inside, opened
from emu.lab.rtnl import nlmsgerr

_SOL_NETLINK, _NETLINK_CAP_ACK, _NETLINK_EXT_ACK = 270, 10, 11  # linux/netlink.h
_ANSWER_BYTES = 65536
_REQUESTS_OF_A_MESSAGE = 100
"""So many answers fit into a socket's receive buffer."""

_REMEDIES: dict[type[NetStep], str] = {
    AddTun: tun.REMEDY,
    AddVeth: "sudo modprobe veth",
    AttachClsact: "sudo modprobe sch_ingress",
    AttachEgressFilter: "sudo modprobe cls_bpf",
}
"""Step -> the command that enables the kernel to carry it out."""
_LACKING = (errno.EOPNOTSUPP, errno.ENODEV, errno.ENOENT)
_FORBIDDEN = (errno.EPERM, errno.EACCES)


def carry_out(steps: Iterable[NetStep], pids: Mapping[str, int]) -> None:
    """Carries out steps, in order. `pids`: a process or thread in each namespace.

    Raises HostError if this machine lacks or forbids something, and FabricError.
    """
    with opened(pids) as namespaces:
        for name, of_one in groupby(steps, lambda step: step.namespace):
            with inside(namespaces[name]), _rtnetlink() as kernel:
                for batch in _batches(of_one):
                    _carry_out(batch, namespaces, kernel)


def _batches(steps: Iterable[NetStep]) -> Iterator[list[NetStep]]:
    """Batches of steps of one type. A step's request needs the interface index, so the interface
    must exist before the request is written."""
    for _, alike in groupby(steps, type):
        left = list(alike)
        while left:
            yield left[:_REQUESTS_OF_A_MESSAGE]
            del left[:_REQUESTS_OF_A_MESSAGE]


def _carry_out(
    steps: Sequence[NetStep], namespaces: Mapping[str, int], kernel: socket.socket
) -> None:
    requests = []
    for step in steps:
        try:
            if isinstance(step, AddTun):
                tun.make(step.interface)  # by ioctl: rtnetlink has no such request
            else:
                requests.append(request(step, namespaces))
        except OSError as error:
            raise failure(step, error) from None
    if requests:
        kernel.send(b"".join(requests))
        for step in steps:
            if refusal := _refusal(kernel):
                raise failure(step, refusal)


def _rtnetlink() -> socket.socket:
    """A socket whose answers contain the kernel's error texts, and do not repeat the requests."""
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    for option in (_NETLINK_CAP_ACK, _NETLINK_EXT_ACK):
        kernel.setsockopt(_SOL_NETLINK, option, 1)
    return kernel


def _refusal(kernel: socket.socket) -> OSError | None:
    """The error in the kernel's next answer, or None."""
    answer = nlmsgerr(kernel.recv(_ANSWER_BYTES))
    answer.decode()
    number = -answer["error"]
    reason = answer.get_attr("NLMSGERR_ATTR_MSG") or os.strerror(number)
    return OSError(number, reason) if number else None


def failure(step: NetStep, error: OSError) -> EmuError:
    """The error for the user: the failed step, its namespace, the reason and the remedy."""
    remedy = _REMEDIES.get(type(step), "")
    what = f"namespace {step.namespace}: the kernel did not {step}: {error.strerror or error}"
    if remedy and (error.errno in _LACKING or isinstance(step, AddTun)):
        return HostError(what, remedy=remedy)
    if error.errno in _FORBIDDEN:
        return HostError(what, remedy="run as root, or run `emu check`")
    if error.errno == errno.EEXIST:
        return FabricError(f"{what}; two nodes must not have the same name in the spec's topology")
    return FabricError(what)
