"""Lets a client's program act as a host's NIC."""

from __future__ import annotations

import socket

from emu.bindings.packet_socket import packet_socket
from emu.daemon.messages import BorrowedNic, BorrowNic
from emu.daemon.served_lab import Answer, ServedLab
from emu.errors import UsageError
from emu.lab.netns import entered
from emu.spec.diagnostic import unknown_name


def answer(lab: ServedLab, query: BorrowNic) -> Answer:
    if lab.traffic.status.state == "running":
        raise UsageError("the lab's traffic uses the NICs; run `emu traffic stop` first")
    if query.host not in lab.topology.host:
        raise UsageError(unknown_name("host", query.host, list(lab.topology.host)))
    interface = lab.topology.ports[query.host][0].interface
    with entered(lab.session.lab.pids[query.host]):
        opened, ifindex = packet_socket(interface), socket.if_nametoindex(interface)
    subnet = lab.session.subnet
    return BorrowedNic(ifindex, subnet.join() if subnet else None), [opened.detach()]
