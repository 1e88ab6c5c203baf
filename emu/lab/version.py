"""Which version of `emu` this is, as far as a lab and the commands that ask it must agree.

A release says so by its number. Between two releases the code of labs changes, too, and
with it what they answer. So the version also has a digest of that code: a lab works it out
when it comes up, a command when it asks.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import emu

_PACKAGES = ("bindings", "daemon", "lab", "measure", "spec")
"""Of `emu`: the code of the answers, and of their readers."""


@cache
def version() -> str:
    """The release, and the first digits of the digest."""
    folder = Path(emu.__file__).parent
    files = sorted(file for name in _PACKAGES for file in (folder / name).rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        code = file.read_bytes()
        digest.update(f"{file.relative_to(folder)} {len(code)}\n".encode() + code)
    return f"{emu.__version__} (code {digest.hexdigest()[:8]})"
