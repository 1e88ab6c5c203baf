"""Runs a figure's job in a lab of its own, and returns the result."""

from __future__ import annotations

from typing import TypeVar

from emu.lab.ipc.jobs import Job
from emu.lab.namespace import run_in_lab

A = TypeVar("A")

_INSIDE = "emu.bench.inside"


def in_lab(job: Job[A]) -> A:
    """The result of a job of inside.py. Raises HostError, FabricError."""
    result, _ = run_in_lab(job, on_progress=lambda progress: None, module=_INSIDE)
    return result
