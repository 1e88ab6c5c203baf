"""The names of a user's standing labs: a socket each, in a folder of the user's own (`folder.py`).

A lab has a name as long as its socket is bound. When a lab dies, its owner writes a record
that says why, and takes the socket away. When the owner itself was killed the socket stays,
bound to nobody, and that says why. `emu status` shows both and removes them; so does the next
lab of that name.

Nothing here waits for a lab: one that was stopped would otherwise block all others.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass

from emu.daemon.folder import ELSEWHERE, LabFolder, locked_folder
from emu.errors import FabricError, UsageError
from emu.lab.ipc.channel import Channel
from emu.spec.diagnostic import did_you_mean

_BACKLOG = 4096
"""As many calls as the kernel lets wait for a lab that was stopped."""
_OWNER_WAS_KILLED = "its owner process was killed, or the machine was restarted"


class SilentLab(FabricError):
    """A lab that is there, and does not answer."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(
            f"the lab {name} {what}: one of its processes was stopped, or the machine is "
            "overloaded; continue the process (`kill -CONT`), or end the lab with "
            f"`emu down {name}`"
        )


@dataclass(frozen=True)
class Ended:
    """A lab that has died."""

    name: str
    reason: str
    at: float | None
    """When, in seconds since 1970; None: nobody was left to note it."""


def claim(name: str) -> socket.socket:
    """Takes the name; returns the socket to listen on. Raises UsageError when it is taken.

    The kernel names the calling process to whoever dials the lab.
    """
    with locked_folder(make=True) as folder:
        if name in _living(folder):
            raise UsageError(
                f"a lab named {name} is up already; end it with `emu down {name}`, or give this"
                " one another name with --name"
            )
        folder.remove_socket(name)
        folder.remove_record(name)
        try:
            return _listen(folder, name)
        except OSError as error:  # as where names of sockets are unknown, or the disk is full
            raise UsageError(
                f"{folder.path}: no socket can be made there ({error.strerror}); {ELSEWHERE}"
            ) from None


def _listen(folder: LabFolder, name: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    os.fchmod(listener.fileno(), 0o600)  # the mode that `bind` gives the name
    try:
        listener.bind(folder.address(name))
        listener.listen(_BACKLOG)
    except BaseException:  # an interrupt, too
        folder.remove_socket(name)
        listener.close()
        raise
    return listener


def release(name: str, reason: str = "") -> None:
    """Gives the name back. `reason`: why the lab has died, to be shown by `emu status`."""
    with locked_folder() as folder:
        folder.remove_socket(name)
        if reason:
            told = asdict(Ended(name, reason, time.time()))
            folder.write_record(name, json.dumps(told))


def names() -> list[str]:
    """The names of all labs that are up, or coming up."""
    with locked_folder() as folder:
        return _living(folder)


def ended() -> list[Ended]:
    """The labs that have died since somebody was shown why."""
    with locked_folder() as folder:
        return _ended(folder)


def forget(labs: list[Ended]) -> None:
    """Removes what is left of labs that have died, once it was shown why."""
    with locked_folder() as folder:
        still_dead = {lab.name for lab in _ended(folder)}
        for name in still_dead & {lab.name for lab in labs}:
            folder.remove_socket(name)
            folder.remove_record(name)


def dial(name: str | None) -> tuple[str, Channel]:
    """A lab's name and a channel to it. None: the only one there is.

    Raises UsageError when there is no such lab, SilentLab when it takes no more calls.
    """
    with locked_folder() as folder:
        chosen = _choose(name, _living(folder), _ended(folder))
        line = _call(folder, chosen)
    return chosen, Channel(line)


def _choose(name: str | None, known: list[str], dead: list[Ended]) -> str:
    if name is not None and name not in known:
        why = [f"the lab {name} has ended: {one.reason}" for one in dead if one.name == name]
        if why:
            raise UsageError(f"{why[0]}; start it again with `emu up SPEC`")
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


def _living(folder: LabFolder) -> list[str]:
    return [name for name in folder.look()[0] if _is_bound(folder, name)]


def _ended(folder: LabFolder) -> list[Ended]:
    sockets, records = folder.look()
    dead = sorted({*sockets, *records} - set(_living(folder)))
    return [
        _read(folder, name) if name in records else Ended(name, _OWNER_WAS_KILLED, None)
        for name in dead
    ]


def _read(folder: LabFolder, name: str) -> Ended:
    """An owner that was killed while it wrote has left less than all."""
    try:
        told = json.loads(folder.read_record(name))
        return Ended(name, str(told["reason"]), float(told["at"]))
    except (ValueError, KeyError, TypeError):
        return Ended(name, "its owner process was killed while it noted the reason", None)


def _is_bound(folder: LabFolder, name: str) -> bool:
    """Whether a process has the socket open, found out without disturbing it.

    A socket of another type is refused as such when there is one (POSIX, connect: EPROTOTYPE).
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        return probe.connect_ex(folder.address(name)) == errno.EPROTOTYPE


def _call(folder: LabFolder, name: str) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.setblocking(False)
    with suppress(ConnectionRefusedError, FileNotFoundError):
        try:
            line.connect(folder.address(name))
        except BlockingIOError:
            line.close()
            raise SilentLab(name, "takes no more calls") from None
        line.setblocking(True)
        return line
    line.close()
    raise UsageError(f"the lab {name} has just ended")
