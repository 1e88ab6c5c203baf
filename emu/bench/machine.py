"""Describes this machine, so that figures of several machines can be compared."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """The properties that figures depend on. The load is that before the first figure."""
    return {
        "processor": _field("/proc/cpuinfo", "model name"),
        "processors": len(os.sched_getaffinity(0)),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "root": os.geteuid() == 0,
        "load_average": os.getloadavg()[0],
    }


def _field(path: str, name: str) -> str:
    """The value of the first `name: value` line; empty if there is none."""
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
