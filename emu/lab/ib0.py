"""ib0, a host's interface for IP over InfiniBand (IPoIB).

Only the driver of an InfiniBand device can make an interface of the kernel's IPoIB type. A
lab's ib0 is a TUN device instead: the kernel passes IP packets to the NIC process, which sends
each as an IPoIB datagram, and the other way round.

    ping, iperf3 ── kernel ── ib0 ══ NIC process: queue pair ── h1-eth0 ══ shim

The device exists as long as the host's namespace. While no NIC process serves it, the kernel
drops its packets and counts them.
"""

from __future__ import annotations

import os

from emu.lab import tun
from emu.lab.net_steps import AddAddress, AddTun, NetStep, SetQueue, SetUp
from topologies.graph import Host

NAME = "ib0"
QUEUE_PACKETS = 1000
"""The longest queue in the kernel in front of the NIC, as on a RoCE host's interface."""
_NETWORK_BITS = 8


def steps_of(host: Host, mtu: int) -> tuple[NetStep, ...]:
    """The steps that make ib0 in the host's namespace."""
    return (
        AddTun(host.name, NAME),
        SetQueue(host.name, NAME, mtu, QUEUE_PACKETS),
        SetUp(host.name, NAME),
        AddAddress(host.name, NAME, str(host.ip), _NETWORK_BITS),
    )


def why_missing() -> str:
    """Why this lab cannot have an ib0; empty if it can."""
    try:
        os.close(tun.plug_in(NAME))
    except OSError as error:
        return f"{tun.DEVICE}: {error.strerror}"
    return ""
