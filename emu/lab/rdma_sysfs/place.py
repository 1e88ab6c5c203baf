"""Where a lab keeps the trees of its hosts. A file of its own: clients import it alone."""

from __future__ import annotations

from pathlib import Path

from emu.lab.namespace import PRIVATE


def tree_of(host: str) -> Path:
    """The folder with the tree of a host, in the lab's own file system."""
    return PRIVATE / "sys" / host
