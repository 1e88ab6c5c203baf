"""Captures a port: the shim sends its frames to a socket, and the client gets the other end."""

from __future__ import annotations

from emu.daemon.handlers.ports import rates_bps
from emu.daemon.messages import Capture
from emu.daemon.served_lab import Answer, ServedLab
from emu.errors import UsageError
from emu.lab.ipc.messages import Done
from emu.spec.diagnostic import unknown_name


def answer(lab: ServedLab, query: Capture) -> Answer:
    known = list(rates_bps(lab))
    if query.port not in known:
        raise UsageError(unknown_name("port", query.port, known))
    if query.since_start:
        _check_history(lab, query.port)
    return Done(), [lab.shim.tap(query.port, since_start=query.since_start)]


def _check_history(lab: ServedLab, port: str) -> None:
    kept = lab.session.spec.capture
    if "all" not in kept and port not in kept:
        whose = f"only that of {', '.join(kept)}" if kept else "none"
        raise UsageError(
            f"{port} has no history: the spec's `capture:` keeps {whose}; leave "
            f"--since-start out, or bring the lab up with --set 'capture=[\"{port}\"]'"
        )
