"""Runs a figure's job in a lab of its own, and brings back what it measured."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

from emu.lab.ipc.messages import Json, Request
from emu.lab.namespace import run_in_lab

_INSIDE = "emu.bench.inside"


def in_lab(job: str, spec: str = "", **options: Any) -> Json:
    """The value of a job of inside.py. Raises HostError, FabricError."""
    with TemporaryDirectory(prefix="emu-bench-") as out:
        request = Request(job, spec, out, options)
        value, _ = run_in_lab(request, on_progress=lambda told: None, module=_INSIDE)
    return value
