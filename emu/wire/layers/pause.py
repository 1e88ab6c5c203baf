"""Priority flow control frames (IEEE 802.1Qbb), with scapy's own MAC control layer.

scapy has the layout and pads to 60 bytes, but does not set the address. Pause frames
go to 01:80:C2:00:00:01, which no bridge forwards, and are untagged.
"""

from __future__ import annotations

from collections.abc import Mapping

from scapy.contrib.mac_control import MAC_CONTROL_ETHER_TYPE, MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether
from scapy.packet import Packet

PAUSE_MAC = "01:80:c2:00:00:01"
PRIORITIES = range(8)
QUANTA_MAX = 0xFFFF


def pfc(quanta: Mapping[int, int], *, src: str = "02:00:00:00:00:01") -> Packet:
    """A PFC frame. `quanta`: priority -> quanta of 512 bit times; 0 quanta resume it (XON).

    >>> sendp(pfc({3: 0xFFFF}), iface="h1-eth0")
    """
    frame = MACControlClassBasedFlowControl()
    for priority, time in quanta.items():
        if priority not in PRIORITIES or not 0 <= time <= QUANTA_MAX:
            raise ValueError(f"priority {priority} (0-7) for {time} quanta (0-65535) cannot be")
        frame.setfieldval(f"c{priority}_enabled", 1)
        frame.setfieldval(f"c{priority}_pause_time", time)
    return Ether(dst=PAUSE_MAC, src=src, type=MAC_CONTROL_ETHER_TYPE) / frame
