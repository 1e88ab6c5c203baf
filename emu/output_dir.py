"""Output files, and the folders that they are in.

Where somebody else may write, too (/tmp, a shared disk), a symbolic link can wait in the place
of a file or of a folder, and lead to any file of the user's. So:

- A path is walked folder by folder. A symbolic link is followed when it is the user's own or
  root's; another user's is an error (`owners.py`).
- A file is written anew beside its place and then takes it: what was there is never written
  into, and a reader sees the whole of the old file or the whole of the new one. Where the file
  system can do that (O_TMPFILE), it has no name until it is whole: a killed process leaves nothing.
- A FIFO or a character device is written to as it is. So is an open file of a process, as
  `/dev/stdout`: what is written goes where this process would write next, after what is there.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path, PurePath
from tempfile import TemporaryFile
from typing import BinaryIO

from emu.errors import EmuError, UsageError
from emu.owners import may_be_foreign
from emu.streams import PatientFile

_MOST_LINKS = 40
"""As the kernel has it (path_resolution(7))."""
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OUR_FILES = Path("/proc/self/fd")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMELESS = os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC


@contextmanager
def writing_into(folder: Path, option: str = "--out") -> Iterator[None]:
    """Makes the folder for its body, which writes there. Raises EmuError when it could not.

    `option` is the one that chooses the folder.
    """
    try:
        make_folder(folder)
        yield
    except OSError as error:
        raise EmuError(
            f"{folder}: {error.strerror}; what was written there is not whole: make room, or "
            f"choose another {option}"
        ) from None


def refuse_unwritable(out: Path, option: str = "--out") -> None:
    """Raises UsageError if the folder of the option cannot be written.

    Does not make the folder, so that a killed run leaves no empty folder.
    """
    try:
        check_links(out.absolute())
        existing = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
        TemporaryFile(dir=existing).close()
    except OSError as error:
        raise UsageError(
            f"{out}: nothing can be written there ({error.strerror}); choose another {option}"
        ) from None


def refuse_unwritable_file(path: Path, option: str) -> None:
    """Raises UsageError if the folder of a file cannot be written; not for devices as
    `/dev/stdout`."""
    if not is_written_as_it_is(path):
        refuse_unwritable(path.parent, option)


def make_folder(folder: Path) -> None:
    """With those above it. Raises OSError, and EmuError where a link leads there."""
    with _walk(folder, make=True):
        return


def check_links(folder: Path) -> None:
    """Raises EmuError when somebody else's symbolic link leads to the folder, or to one above."""
    with suppress(FileNotFoundError), _walk(folder):
        return


def is_written_as_it_is(path: Path) -> bool:
    """Whether what is at the path is written to and stays, as a FIFO does. Raises EmuError."""
    try:
        with _walk(path.parent) as folder:
            output = _output_at(folder, path.name, path)
    except OSError:  # nothing is there, or nothing can be written
        return False
    os.close(output.folder)
    return output.as_it_is


def write_text(path: Path, text: str) -> None:
    """Writes a file anew. Raises OSError, EmuError."""
    with new_file(path) as stream:
        stream.write(text.encode())


@contextmanager
def new_file(path: Path, *, at_once: bool = False) -> Iterator[BinaryIO]:
    """A file that takes its place when the body is done, or with `at_once` while it is empty.

    When the body raises, what was there stays. Raises OSError, EmuError.
    """
    with _walk(path.parent) as folder:
        output = _output_at(folder, path.name, path)
        try:
            with _stream(output, at_once=at_once) as stream:
                yield stream
        finally:
            os.close(output.folder)


@dataclass(frozen=True)
class _Output:
    """Where a file is to be: a name in an open folder, which is the holder's to close."""

    folder: int
    name: str
    as_it_is: bool
    """Whether it is there, and written to as it is."""
    is_ours: bool = False
    """Whether it is an open file of this process."""


@contextmanager
def _stream(output: _Output, *, at_once: bool) -> Iterator[BinaryIO]:
    if output.as_it_is:
        with _open_as_it_is(output) as stream:
            yield stream
        return
    beside = f".{output.name[:200]}.{secrets.token_hex(4)}"
    file = _new(beside, output)
    try:
        with os.fdopen(file, "wb") as stream:
            if at_once:
                _put(file, beside, output)
            yield stream
            if not at_once:
                stream.flush()
                _put(file, beside, output)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=output.folder)  # its name is ours alone
        raise


def _new(name: str, output: _Output) -> int:
    """A new file in the output's folder, without a name if possible."""
    with suppress(OSError):  # a file system without such files, as overlayfs before Linux 6.1
        return os.open(".", _NAMELESS, 0o666, dir_fd=output.folder)
    return os.open(name, _NEW, 0o666, dir_fd=output.folder)


def _open_as_it_is(output: _Output) -> BinaryIO:
    if not output.is_ours:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        return os.fdopen(os.open(output.name, flags, dir_fd=output.folder), "wb")
    sys.stdout.flush()  # comes before, where it is the same file
    return BufferedWriter(PatientFile(os.dup(int(output.name))))


def _put(file: int, beside: str, output: _Output) -> None:
    if not os.fstat(file).st_nlink:
        os.link(_OUR_FILES / str(file), beside, dst_dir_fd=output.folder)
    os.rename(beside, output.name, src_dir_fd=output.folder, dst_dir_fd=output.folder)


def _output_at(folder: int, name: str, path: Path, links: int = 0) -> _Output:
    """Follows symbolic links that may be followed."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return _Output(os.dup(folder), name, as_it_is=False)
    if stat.S_ISREG(found.st_mode):
        return _Output(os.dup(folder), name, as_it_is=False)
    if stat.S_ISLNK(found.st_mode):
        target = _link_leads_to(folder, name, path)
        if _is_of_processes(folder):
            is_ours = os.path.samestat(os.fstat(folder), _OUR_FILES.stat())
            return _Output(os.dup(folder), name, as_it_is=True, is_ours=is_ours)
        if links == _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        with _walk(target.parent, start=folder) as parent:
            return _output_at(parent, target.name, path, links + 1)
    if stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode):
        if may_be_foreign(found.st_uid, folder):
            raise EmuError(
                f"{path}: it belongs to the user {found.st_uid}, who would read what is written; "
                "choose another place"
            )
        return _Output(os.dup(folder), name, as_it_is=True)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(errno.EINVAL, "it is a socket or a block device, not a file")


def _is_of_processes(folder: int) -> bool:
    """Whether its links are open files (proc(5)), as `/proc/self/fd/1` behind `/dev/stdout`."""
    return (_OUR_FILES / str(folder)).readlink().is_relative_to("/proc")


@contextmanager
def _walk(folder: PurePath, *, make: bool = False, start: int | None = None) -> Iterator[int]:
    """The folder, open. `start`: where a relative path begins; the working folder otherwise."""
    here = os.open(".", _FOLDER, dir_fd=start)
    try:
        todo, links = [*reversed(folder.parts)], 0
        while todo:
            part = todo.pop()
            target = None if part == "/" else _link_target(here, part, folder)
            if target is not None:
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                todo += reversed(target.parts)
                continue
            if make and part not in ("/", ".."):
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=here)
            before, here = here, os.open(part, _FOLDER, dir_fd=here)
            os.close(before)
        yield here
    finally:
        os.close(here)


def _link_target(folder: int, name: str, path: PurePath) -> PurePath | None:
    """None: it is no symbolic link."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return _link_leads_to(folder, name, path) if stat.S_ISLNK(found.st_mode) else None


def _link_leads_to(folder: int, name: str, path: PurePath) -> PurePath:
    """Where a symbolic link leads. Raises EmuError when it is somebody else's."""
    link = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        owner = os.fstat(link).st_uid
        if may_be_foreign(owner, folder):
            raise EmuError(
                f"{path}: {name} is a symbolic link of the user {owner}, and may lead anywhere; "
                "it is not followed: choose another place, or remove it"
            )
        return PurePath(os.readlink("", dir_fd=link))
    finally:
        os.close(link)
