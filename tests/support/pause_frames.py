"""Pause frames, built by scapy."""

from __future__ import annotations

from typing import Any

from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.l2 import Ether


def pfc_frame(priority: int, quanta: int) -> bytes:
    """A PFC frame as another implementation builds it."""
    enable: dict[str, Any] = {f"c{priority}_enabled": 1, f"c{priority}_pause_time": quanta}
    frame = Ether(dst="01:80:c2:00:00:01", src="02:00:00:00:00:09")
    return bytes(frame / MACControlClassBasedFlowControl(**enable))


def global_pause_frame(quanta: int) -> bytes:
    return bytes(Ether(dst="01:80:c2:00:00:01") / MACControlPause(pause_time=quanta))
