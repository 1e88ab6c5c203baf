"""Folders that results are written into: a disk that is full is told of by the folder's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emu.errors import EmuError


@contextmanager
def writing_into(folder: Path, option: str = "--out") -> Iterator[None]:
    """Makes the folder for its body, which writes there. Raises EmuError when it could not.

    `option` is the one that chooses the folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise EmuError(
            f"{folder}: {error.strerror}; what was written there is not whole: make room, or "
            f"choose another {option}"
        ) from None
