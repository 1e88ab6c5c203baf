"""Where the names of a user's standing labs are: a socket each, in a folder of the user's own.

    $XDG_RUNTIME_DIR/emu/NAME       or, without a runtime folder, ~/.cache/emu-labs/NAME

Only the user may enter the folder, so users do not see each other's labs. A name
is taken when somebody listens on its socket. A socket that nobody listens on is
all that is left when a lab's owner was killed; whoever looks next removes it.
Everything here happens while the folder's parent is locked, so that nobody takes
away what another is just making.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from emu.errors import UsageError
from emu.lab.channel import Channel
from emu.spec.finding import did_you_mean

_BACKLOG = 64


def claim(name: str) -> socket.socket:
    """Takes the name; returns the socket to listen on. Raises UsageError when it is taken."""
    with _locked() as folder:
        if name in _living(folder):
            raise UsageError(
                f"a lab named {name} is up already; end it with `emu down {name}`, or give this"
                " one another name with --name"
            )
        folder.mkdir(mode=0o700, exist_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        with _short(folder) as short:
            listener.bind(f"{short}/{name}")
        listener.listen(_BACKLOG)
    return listener


def release(name: str) -> None:
    """Gives the name back."""
    with _locked() as folder:
        (folder / name).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()  # the last one


def names() -> list[str]:
    """The names of all labs that are up, or coming up."""
    with _locked() as folder:
        return _living(folder)


def dial(name: str | None) -> tuple[str, Channel]:
    """A lab's name and a channel to it. None: the only one there is. Raises UsageError."""
    with _locked() as folder:
        known = _living(folder)
        chosen = _choose(name, known)
        line = _call(folder, chosen)
    if line is None:
        raise UsageError(f"the lab {chosen} has just ended")
    return chosen, Channel(line)


def _choose(name: str | None, known: list[str]) -> str:
    if not known:
        wanted = f"there is no lab {name!r}: " if name else ""
        raise UsageError(f"{wanted}no lab is up; start one with `emu up SPEC`")
    if name is None:
        if len(known) > 1:
            raise UsageError(f"several labs are up, say which one: {', '.join(known)}")
        return known[0]
    if name not in known:
        hint = did_you_mean(name, known) or f"; up are {', '.join(known)}"
        raise UsageError(f"there is no lab {name!r}{hint}")
    return name


def _living(folder: Path) -> list[str]:
    """The names that somebody listens on; the others are removed."""
    living = []
    for path in sorted(folder.iterdir()) if folder.exists() else ():
        line = _call(folder, path.name)
        if line is None:
            path.unlink()
        else:
            line.close()
            living.append(path.name)
    if folder.exists() and not living:
        with suppress(OSError):
            folder.rmdir()
    return living


def _call(folder: Path, name: str) -> socket.socket | None:
    """None: nobody listens."""
    line = socket.socket(socket.AF_UNIX)
    with _short(folder) as short:
        try:
            line.connect(f"{short}/{name}")
        except (ConnectionRefusedError, FileNotFoundError):
            line.close()
            return None
    return line


def _folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "emu"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "emu-labs"


@contextmanager
def _locked() -> Iterator[Path]:
    """The folder, while nobody else of us is busy there."""
    folder = _folder()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        parent = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise UsageError(
            f"{folder.parent}: {error.strerror}, so that labs have no place for their names; "
            "set XDG_RUNTIME_DIR to a folder of your own"
        ) from None
    try:
        fcntl.flock(parent, fcntl.LOCK_EX)
        if folder.exists() and folder.stat().st_uid != os.geteuid():
            raise UsageError(f"{folder}: belongs to somebody else; set XDG_RUNTIME_DIR to your own")
        yield folder
    finally:
        os.close(parent)


@contextmanager
def _short(folder: Path) -> Iterator[str]:
    """The folder by a name that fits into a socket's address, which has room for 107 bytes."""
    inside = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{inside}"
    finally:
        os.close(inside)
