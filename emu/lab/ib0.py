"""ib0: a host's interface for IP over InfiniBand.

Only a driver of an InfiniBand device can make an interface of the kernel's own IPoIB
type. Ours is a TUN device of that name: the kernel hands IP packets over as they are,
and the NIC process puts each into a datagram, and back.

    ping, iperf3 ── kernel ── ib0 ══ NIC process: queue pair ── h1-eth0 ══ shim

The device lives in the host's namespace whether or not a NIC process is there to serve
it; packets that nobody serves are dropped, and counted by the kernel.
"""

from __future__ import annotations

import os

from emu.lab import tun
from emu.lab.net_steps import AddAddress, AddTun, NetStep, SetQueue, SetUp
from topologies.graph import Host

NAME = "ib0"
QUEUE_PACKETS = 1000
"""The most packets that wait in the kernel for the NIC, as in front of a RoCE host's cable."""
_NETWORK_BITS = 8


def steps_of(host: Host, mtu: int) -> tuple[NetStep, ...]:
    """The steps that make the interface in the host's namespace."""
    return (
        AddTun(host.name, NAME),
        SetQueue(host.name, NAME, mtu, QUEUE_PACKETS),
        SetUp(host.name, NAME),
        AddAddress(host.name, NAME, str(host.ip), _NETWORK_BITS),
    )


def why_missing() -> str:
    """The reason why this lab cannot have the interface; empty if it can."""
    try:
        os.close(tun.plug_in(NAME))
    except OSError as error:
        return f"{tun.DEVICE}: {error.strerror}"
    return ""
