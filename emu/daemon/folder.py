"""The folder with the names of a user's background labs, and the rules for its content.

    $XDG_RUNTIME_DIR/emu     or, without a runtime folder that can be written, ~/.cache/emu-labs
      NAME                   a lab's socket
      .NAME.ended            the reason why a lab has died, until `emu status` has shown it

Rules:

- The folder must not be a symbolic link; it must belong to the user, and only the user may enter
  it. It is opened once, and all access uses that descriptor, so that another process cannot
  replace the folder meanwhile.
- Only entries that `emu` has made are removed; their name, kind, owner and mode are checked first.
  Any other entry is an error that names it, and stays.
- A process that holds the lock does not wait for anything.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from emu.errors import FabricError, UsageError
from emu.folders import user_folder

_LAB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""The valid names of labs (see the spec's `name`)."""
_RECORD = re.compile(rf"\.({_LAB.pattern})\.ended")
_FOLDER_MODE, _ENTRY_MODE = 0o700, 0o600
_MOST_BYTES = 1 << 16
_SECONDS_TO_GET_THE_LOCK = 10.0
_SECONDS_BETWEEN_TRIES = 0.01
_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class LabFolder:
    """The open folder. `descriptor`: None if the folder does not exist."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        self.has_removed = False
        """Whether an entry was removed, so that an empty folder may be removed, too."""
        self._descriptor = descriptor

    def list_labs(self) -> tuple[list[str], list[str]]:
        """The names of labs that have a socket, and of those that have a record.

        Raises UsageError if there is any other entry.
        """
        if self._descriptor is None:
            return [], []
        with os.scandir(self._descriptor) as entries:
            names = sorted(entry.name for entry in entries)
        foreign = [f"{self.path / name}: {why}" for name in names if (why := self._why_not(name))]
        if foreign:
            raise UsageError(
                "\n".join(foreign) + f"\n{self.path} is only for the sockets of `emu`; nothing "
                "was removed: move the other entries away, and try again"
            )
        records = [found[1] for name in names if (found := _RECORD.fullmatch(name))]
        return [name for name in names if _LAB.fullmatch(name)], records

    def address(self, name: str) -> str:
        """A path of a lab's socket that fits into a socket address (107 bytes)."""
        return f"/proc/self/fd/{self._open()}/{name}"

    def remove_socket(self, name: str) -> None:
        """Removes a lab's socket, if `emu` has made it."""
        self._remove(name)

    def write_record(self, name: str, text: str) -> None:
        self.remove_record(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(_record(name), flags, _ENTRY_MODE, dir_fd=self._open())
        with os.fdopen(file, "wb") as stream:
            os.fchmod(file, _ENTRY_MODE)
            stream.write(text.encode()[:_MOST_BYTES])

    def read_record(self, name: str) -> str:
        file = os.open(_record(name), os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._open())
        with os.fdopen(file, "rb") as stream:
            return stream.read(_MOST_BYTES).decode(errors="replace")

    def remove_record(self, name: str) -> None:
        """Removes the record of why a lab has died, if `emu` has made it."""
        self._remove(_record(name))

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            if self._descriptor is not None and not self._why_not(name):
                os.unlink(name, dir_fd=self._descriptor)
                self.has_removed = True

    def _open(self) -> int:
        assert self._descriptor is not None
        return self._descriptor

    def _why_not(self, name: str) -> str:
        """Why `emu` cannot have made an entry; empty if it can."""
        is_record = _RECORD.fullmatch(name) is not None
        if not is_record and not _LAB.fullmatch(name):
            return "this is not the name of a lab"
        found = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        kind = stat.S_IFMT(found.st_mode)
        if kind != (stat.S_IFREG if is_record else stat.S_IFSOCK):
            return f"it is {_KINDS.get(kind, 'something else')}, and not made by `emu`"
        if found.st_uid != os.geteuid():
            return f"it belongs to the user {found.st_uid}, not to you ({os.geteuid()})"
        if found.st_nlink != 1:
            return "it has more than one name, and `emu` gives it only one"
        if stat.S_IMODE(found.st_mode) != _ENTRY_MODE:
            return (
                f"its mode is {stat.S_IMODE(found.st_mode):03o}, and `emu` makes it {_ENTRY_MODE:o}"
            )
        return ""


@contextmanager
def locked_folder(*, make: bool = False) -> Iterator[LabFolder]:
    """The folder, locked against other `emu` processes of this user. `make`: create it if missing.

    The folder is removed after its last entry. Raises UsageError if the folder breaks the rules,
    FabricError if another process keeps the lock.
    """
    path = _path()
    parent = _open_parent(path)
    try:
        _lock(parent, path.parent)
        descriptor = _open_folder(path, parent, make=make)
        folder = LabFolder(path, descriptor)
        try:
            yield folder
        finally:
            if descriptor is not None:
                os.close(descriptor)
            if folder.has_removed:
                with suppress(OSError):
                    os.rmdir(path.name, dir_fd=parent)  # fails unless it is empty
    finally:
        os.close(parent)


ELSEWHERE = "set XDG_RUNTIME_DIR to a folder of your own on a local disk"


def why_elsewhere() -> str:
    """A warning that the names of labs are not in the user's runtime folder; empty if they are."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if not runtime or _is_writable(runtime):
        return ""
    return (
        f"XDG_RUNTIME_DIR is {runtime}, where you cannot write: the names of labs are stored in "
        f"{_path()}"
    )


def _is_writable(runtime: str) -> bool:
    return os.access(runtime, os.W_OK | os.X_OK)


def _path() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and _is_writable(runtime):
        return Path(runtime) / "emu"
    return user_folder("XDG_CACHE_HOME", ".cache") / "emu-labs"


def _open_parent(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            f"{path.parent}: {error.strerror}, so the names of labs cannot be stored there; "
            f"{ELSEWHERE}"
        ) from None


def _lock(parent: int, path: Path) -> None:
    deadline = time.monotonic() + _SECONDS_TO_GET_THE_LOCK
    while True:
        try:
            fcntl.flock(parent, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise FabricError(
                    f"{path}: another process has kept this folder locked for "
                    f"{_SECONDS_TO_GET_THE_LOCK:g} s; if it is an `emu` that was stopped, "
                    "continue it (`fg`, or `kill -CONT`) or end it, and try again"
                ) from None
            time.sleep(_SECONDS_BETWEEN_TRIES)
        except OSError as error:  # as on NFS without a lock manager
            raise UsageError(
                f"{path}: this folder cannot be locked ({error.strerror}), so the names of "
                f"labs cannot be stored there; {ELSEWHERE}"
            ) from None
        else:
            return


def _open_folder(path: Path, parent: int, *, make: bool) -> int | None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        if make:
            with suppress(FileExistsError):
                os.mkdir(path.name, _FOLDER_MODE, dir_fd=parent)
        descriptor = os.open(path.name, flags, dir_fd=parent)
    except FileNotFoundError:
        if not make:
            return None
        raise UsageError(
            f"{path}: this folder cannot be made, so the names of labs cannot be stored there; "
            f"{ELSEWHERE}"
        ) from None
    except OSError as error:
        raise UsageError(f"{path}: {_what_is_there(path.name, parent, error)}; {_MOVE}") from None
    try:
        _check_folder(path, os.fstat(descriptor))
    except UsageError:
        os.close(descriptor)
        raise
    return descriptor


_MOVE = (
    "the names of labs are stored in that folder: move the present one away, or set "
    "XDG_RUNTIME_DIR to a folder of your own"
)


def _what_is_there(name: str, parent: int, error: OSError) -> str:
    try:
        kind = stat.S_IFMT(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return str(error.strerror)
    if kind == stat.S_IFDIR:
        return str(error.strerror)
    return f"it is {_KINDS.get(kind, 'something else')}, not a folder"


def _check_folder(path: Path, found: os.stat_result) -> None:
    """Raises UsageError unless the folder belongs to the user and has the right mode."""
    if found.st_uid != os.geteuid():
        raise UsageError(
            f"{path}: the folder belongs to the user {found.st_uid}, not to you "
            f"({os.geteuid()}); {_MOVE}"
        )
    if stat.S_IMODE(found.st_mode) != _FOLDER_MODE:
        raise UsageError(
            f"{path}: the folder's mode is {stat.S_IMODE(found.st_mode):03o}, and `emu` makes it "
            f"{_FOLDER_MODE:o}; if it is `emu`'s, run `chmod {_FOLDER_MODE:o} {path}`, "
            "else move it away"
        )


def _record(name: str) -> str:
    return f".{name}.ended"
