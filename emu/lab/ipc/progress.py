"""A run's progress as a message of the lab, and back."""

from __future__ import annotations

from dataclasses import asdict

from emu.lab.ipc.messages import Progress as ProgressMessage
from emu.measure.progress import Progress


def progress_message(progress: Progress) -> ProgressMessage:
    return ProgressMessage("running", asdict(progress))


def told_progress(message: ProgressMessage) -> Progress | None:
    """None while no traffic runs yet."""
    return None if message.moment is None else Progress(**message.moment)
