"""The version of `emu`. A lab and the commands that query it must have the same.

Between two releases the code of labs and their messages change, too. So the version consists of the
release's number and a digest of that code. A lab computes it when it starts, a command when it
connects.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import emu

_PACKAGES = ("bindings", "daemon", "lab", "measure", "spec")
"""The packages of `emu` with the code of messages, and of their senders and receivers."""


@cache
def version() -> str:
    """The release's number, and the first digits of the digest."""
    folder = Path(emu.__file__).parent
    files = sorted(file for name in _PACKAGES for file in (folder / name).rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        code = file.read_bytes()
        digest.update(f"{file.relative_to(folder)} {len(code)}\n".encode() + code)
    return f"{emu.__version__} (code {digest.hexdigest()[:8]})"
