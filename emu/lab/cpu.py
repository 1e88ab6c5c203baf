"""How much processor time the processes of a lab have used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_NS_PER_S = 1e9


class CpuMeter:
    """Counts from the moment it is made."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        """`pids`: a name for each process to watch."""
        self._pids = dict(pids)
        self._before = self._now()

    def used(self) -> dict[str, float]:
        """Seconds of processor time since then, by name."""
        return {name: now - self._before[name] for name, now in self._now().items()}

    def _now(self) -> dict[str, float]:
        return {name: _seconds(pid) for name, pid in self._pids.items()}


def _seconds(pid: int) -> float:
    """Of all threads; the first number in a schedstat is nanoseconds on a processor."""
    threads = Path("/proc", str(pid), "task").iterdir()
    return sum(int((t / "schedstat").read_text().split()[0]) for t in threads) / _NS_PER_S
