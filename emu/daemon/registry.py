"""The names of a user's background labs: a socket for each, in the user's folder (`folder.py`).

A lab has a name as long as a process has its socket open. When a lab dies, its owner writes a
record with the reason and removes the socket. If the owner was killed, the socket stays and no
process has it open. `emu status` shows both and removes them; so does the next lab of that name.

No function waits for a lab: a stopped lab would otherwise block all others.
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
"""The number of connections that can wait for a stopped lab."""
_OWNER_WAS_KILLED = "its owner process was killed, or the machine was restarted"


class SilentLab(FabricError):
    """A lab that runs but does not answer."""

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
    """The time of death in seconds since 1970; None: its owner could not record it."""


def claim(name: str) -> socket.socket:
    """Claims a name and returns the socket to listen on. Raises UsageError if it is in use.

    A client can read the pid of the calling process from its connection.
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
        except OSError as error:  # a file system without sockets, or a full disk
            raise UsageError(
                f"{folder.path}: no socket can be made there ({error.strerror}); {ELSEWHERE}"
            ) from None


def _listen(folder: LabFolder, name: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    os.fchmod(listener.fileno(), 0o600)  # the mode of the socket that `bind` makes
    try:
        listener.bind(folder.address(name))
        listener.listen(_BACKLOG)
    except BaseException:  # interrupts, too
        folder.remove_socket(name)
        listener.close()
        raise
    return listener


def release(name: str, reason: str = "") -> None:
    """Releases a name. `reason`: why the lab has died, for `emu status`."""
    with locked_folder() as folder:
        folder.remove_socket(name)
        if reason:
            record = asdict(Ended(name, reason, time.time()))
            folder.write_record(name, json.dumps(record))


def names() -> list[str]:
    """The names of all labs that are up, or coming up."""
    with locked_folder() as folder:
        return _living(folder)


def ended() -> list[Ended]:
    """The labs that have died, and whose end was not shown yet."""
    with locked_folder() as folder:
        return _ended(folder)


def forget(labs: list[Ended]) -> None:
    """Removes the sockets and records of labs that have died, after their end was shown."""
    with locked_folder() as folder:
        still_dead = {lab.name for lab in _ended(folder)}
        for name in still_dead & {lab.name for lab in labs}:
            folder.remove_socket(name)
            folder.remove_record(name)


def dial(name: str | None) -> tuple[str, Channel]:
    """Connects to a lab; None: the only one. Returns its name and the channel.

    Raises UsageError if there is no such lab, SilentLab if it accepts no more connections.
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
            raise UsageError(f"several labs are up; name one of them: {', '.join(known)}")
        return known[0]
    if name not in known:
        hint = did_you_mean(name, known) or f"; up are {', '.join(known)}"
        raise UsageError(f"there is no lab {name!r}{hint}")
    return name


def _living(folder: LabFolder) -> list[str]:
    return [name for name in folder.list_labs()[0] if _is_bound(folder, name)]


def _ended(folder: LabFolder) -> list[Ended]:
    sockets, records = folder.list_labs()
    dead = sorted({*sockets, *records} - set(_living(folder)))
    return [
        _read(folder, name) if name in records else Ended(name, _OWNER_WAS_KILLED, None)
        for name in dead
    ]


def _read(folder: LabFolder, name: str) -> Ended:
    """The record of a lab. It is incomplete if the owner was killed while it wrote."""
    try:
        record = json.loads(folder.read_record(name))
        return Ended(name, str(record["reason"]), float(record["at"]))
    except (ValueError, KeyError, TypeError):
        return Ended(name, "its owner process was killed while it recorded the reason", None)


def _is_bound(folder: LabFolder, name: str) -> bool:
    """Whether a process has the socket open; the process does not notice the test.

    To connect with another type of socket fails with EPROTOTYPE if it is open (POSIX, connect).
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
            raise SilentLab(name, "accepts no more connections") from None
        line.setblocking(True)
        return line
    line.close()
    raise UsageError(f"the lab {name} has just ended")
