"""The BGP sessions of a switch, read from the log of its bgpd.

bgpd says when a session is established or lost, and when its neighbour has told all that it has to
tell at first (End-of-RIB, RFC 4724).
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

_LINE = re.compile(
    r"^(?P<time>\S+ \S+) BGP: .*(?:"
    r"%ADJCHANGE: neighbor (?P<changed>[^(\s]+)\S* in vrf \S+ (?P<what>Up|Down)"
    r"|rcvd End-of-RIB for IPv4 Unicast from (?P<told>\S+) in vrf)"
)
_LOG_TIME = "%Y/%m/%d %H:%M:%S.%f"


@dataclass
class Session:
    """A session with a neighbour, as one end sees it."""

    established: bool = False
    has_told: bool = False
    """Whether the neighbour has told all."""


class SessionLog:
    """The sessions of one switch, by the name of the interface."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bytes_read = 0
        self.sessions: dict[str, Session] = {}
        self.changes: list[tuple[int, str, bool]] = []
        """When a session changed (time.monotonic_ns), its interface, and whether it is established
        since then."""

    def read(self) -> None:
        """Takes what bgpd has written since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as log:
            log.seek(self._bytes_read)
            lines, end, _ = log.read().rpartition(b"\n")
        self._bytes_read += len(lines) + len(end)
        for line in lines.decode(errors="replace").splitlines():
            if found := _LINE.match(line):
                self._take(found)

    def _take(self, line: re.Match[str]) -> None:
        if line["told"]:
            self.sessions.setdefault(line["told"], Session()).has_told = True
            return
        is_up = line["what"] == "Up"
        self.sessions[line["changed"]] = Session(established=is_up)
        self.changes.append((_monotonic_ns(line["time"]), line["changed"], is_up))


def _monotonic_ns(written: str) -> int:
    """The time of a line, as time.monotonic_ns has it."""
    since_epoch_ns = int(datetime.strptime(written, _LOG_TIME).timestamp() * 1e6) * 1000
    return since_epoch_ns - (time.time_ns() - time.monotonic_ns())
