"""The exchanges with Linux' soft RoCE, in order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

PORT = 18515
ONE_SIDED = "write and read"
MEMORY_BYTES = 20_000
"""Five packets of 4096 bytes or twenty of 1024. The last is not full."""


@dataclass(frozen=True)
class Pingpong:
    """An exchange with ibv_rc_pingpong or ibv_uc_pingpong."""

    name: str
    transport: str
    we_call: bool
    """Whether we are the client."""
    size: int = 4096
    iterations: int = 40
    mtu: int = 1024
    lost: str = ""
    """Direction in which every 17th RoCE frame is lost: `from rxe`, `to rxe`, or empty."""


GAMES = (
    Pingpong("rc, we call", "rc", True),
    Pingpong("rc, rxe calls", "rc", False),
    Pingpong("rc, odd size, largest packets", "rc", True, size=9_999, mtu=4096),
    Pingpong("uc, we call", "uc", True),
    Pingpong("uc, rxe calls", "uc", False),
    Pingpong("rc, frames from rxe lost", "rc", True, iterations=20, lost="from rxe"),
    Pingpong("rc, frames to rxe lost", "rc", False, iterations=20, lost="to rxe"),
)


def one_line(told: Mapping[str, object]) -> bytes:
    return json.dumps(told).encode() + b"\n"
