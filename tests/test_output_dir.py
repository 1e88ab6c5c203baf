"""Output files: links and files of other users are neither followed nor overwritten."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest

from emu.errors import EmuError
from emu.output_dir import (
    check_links,
    is_written_as_it_is,
    make_folder,
    new_file,
    refuse_unwritable,
    write_text,
    writing_into,
)
from tests.support.user import NOBODY, ROOT, may_be_anybody, python_is_for_all

needs_root = pytest.mark.skipif(
    not may_be_anybody(), reason="needs root, to make what belongs to somebody else"
)
needs_python_for_all = pytest.mark.skipif(
    not python_is_for_all(), reason="needs a Python that any user may run"
)


KILLED = """
import os, signal, sys
from pathlib import Path
from emu.output_dir import new_file

with new_file(Path(sys.argv[1])) as stream:
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _foreign_link(path: Path, target: Path) -> None:
    path.symlink_to(target)
    os.lchown(path, NOBODY, NOBODY)


def test_a_file_is_replaced_and_not_overwritten(tmp_path: Path) -> None:
    """A hard link to the old file keeps the old content."""
    path, other = tmp_path / "summary.json", tmp_path / "other"
    other.write_text("kept")
    os.link(other, path)
    write_text(path, "new\n")
    assert (path.read_text(), other.read_text()) == ("new\n", "kept")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["other", "summary.json"]


def test_a_killed_process_leaves_no_file(tmp_path: Path) -> None:
    """Not a hidden one either, where files may be without a name until they are whole."""
    try:
        os.close(os.open(tmp_path, os.O_WRONLY | os.O_TMPFILE))
    except OSError as error:
        pytest.skip(f"needs O_TMPFILE in {tmp_path}: {error}")
    path = tmp_path / "summary.json"
    path.write_text("kept")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("summary.json", "kept")]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    """No other file is left."""
    path = tmp_path / "summary.json"
    path.write_text("kept")
    with suppress(KeyboardInterrupt), new_file(path) as stream:
        stream.write(b"half")
        raise KeyboardInterrupt
    assert [one.name for one in tmp_path.iterdir()] == ["summary.json"]
    assert path.read_text() == "kept"


def test_a_capture_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    """The file is in place from the start and keeps its content if the writer fails."""
    path = tmp_path / "h1.pcapng"
    with suppress(KeyboardInterrupt), new_file(path, at_once=True) as stream:
        stream.write(b"frames")
        stream.flush()
        assert path.read_bytes() == b"frames"
        raise KeyboardInterrupt
    assert path.read_bytes() == b"frames"


def test_the_mode_of_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "one", "")
    finally:
        os.umask(before)
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o640


@needs_root
@pytest.mark.parametrize("write", [write_text, lambda path, _: make_folder(path)])
def test_a_link_of_another_user_is_not_followed(
    write: Callable[[Path, str], None], tmp_path: Path
) -> None:
    """The link is in place of the file, its folder or a folder above.

    Its target stays unchanged.
    """
    victim = tmp_path / "home"
    victim.mkdir()
    (victim / "file").write_text("kept")
    _foreign_link(tmp_path / "file", victim / "file")
    _foreign_link(tmp_path / "folder", victim)
    for path in ("file", "folder/file", "folder/deeper/file", "folder/../folder/file"):
        with pytest.raises(EmuError, match=f"is a symbolic link of the user {NOBODY}"):
            write(tmp_path / path, "mine")
    assert [one.name for one in victim.iterdir()] == ["file"]
    assert (victim / "file").read_text() == "kept"


@needs_root
def test_a_foreign_link_is_refused_before_a_run(tmp_path: Path) -> None:
    """The results of the run would be lost."""
    _foreign_link(tmp_path / "out", tmp_path)
    for act in (check_links, refuse_unwritable):
        with pytest.raises(EmuError, match="out is a symbolic link of the user"):
            act(tmp_path / "out" / "incast")


def test_the_users_own_links_are_followed(tmp_path: Path) -> None:
    """`out` may be a link to a larger disk, and a file may be a link as well."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk")
    (tmp_path / "disk" / "latest").symlink_to("../file")
    with writing_into(tmp_path / "out" / "new"):
        write_text(tmp_path / "out" / "new" / "one", "1")
        write_text(tmp_path / "out" / "latest", "2")
    assert (tmp_path / "disk" / "new" / "one").read_text() == "1"
    assert (tmp_path / "file").read_text() == "2"
    assert (tmp_path / "disk" / "latest").is_symlink()


def test_circular_links_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for path in (tmp_path / "a", tmp_path / "a" / "file"):
        with pytest.raises(OSError, match="symbolic links"):
            write_text(path, "x")


def test_devices_and_pipes_are_not_replaced(tmp_path: Path) -> None:
    """Output goes into them."""
    write_text(Path("/dev/null"), "nothing")
    assert Path("/dev/null").is_char_device()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "through")
    assert os.read(reader, 99) == b"through"
    os.close(reader)
    assert pipe.is_fifo()
    with pytest.raises(OSError, match="No space left"):
        write_text(Path("/dev/full"), "x")


@needs_root
def test_a_pipe_of_another_user_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.chown(tmp_path / "pipe", NOBODY, NOBODY)
    with pytest.raises(EmuError, match=f"it belongs to the user {NOBODY}"):
        write_text(tmp_path / "pipe", "x")


def test_a_folder_in_the_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path / "page", "x")


@pytest.mark.parametrize("through", ["pipe", "file"])
def test_standard_output_can_be_named_as_a_file(through: str, tmp_path: Path) -> None:
    """`/dev/stdout` may be a pipe or a file."""
    program = "import sys; from pathlib import Path; from emu.output_dir import write_text; "
    program += "write_text(Path('/dev/stdout'), 'told')"
    command = [sys.executable, "-c", program]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    if through == "pipe":
        assert subprocess.run(command, env=environment, capture_output=True).stdout == b"told"
    else:
        with (tmp_path / "out").open("wb") as out:
            subprocess.run(command, env=environment, stdout=out, check=True)
        assert (tmp_path / "out").read_bytes() == b"told"
    assert Path("/dev/stdout").is_symlink()


_BETWEEN_LINES = """
import sys
from pathlib import Path
from emu.output_dir import write_text
print("before")
write_text(Path(sys.argv[1]), "told\\n")
print("after")
"""


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize(("mode", "kept"), [("ab", "log\n"), ("wb", "")])
def test_earlier_standard_output_is_kept(name: str, mode: str, kept: str, tmp_path: Path) -> None:
    """With `--junit /dev/stdout >> log` or `> log`, the log has all output in order."""
    log = tmp_path / "log"
    log.write_text("log\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _BETWEEN_LINES, name]
    with log.open(mode) as out:
        subprocess.run(command, env=environment, stdout=out, check=True)
    assert log.read_text() == f"{kept}before\ntold\nafter\n"


def test_open_files_of_other_processes_are_appended_to(tmp_path: Path) -> None:
    """The old content stays."""
    log = tmp_path / "log"
    log.write_text("log\n")
    with log.open("rb") as file, subprocess.Popen(["sleep", "60"], stdin=file) as holder:
        write_text(Path(f"/proc/{holder.pid}/fd/0"), "told\n")
        holder.kill()
    assert log.read_text() == "log\ntold\n"


def test_standard_output_is_written_as_it_is(tmp_path: Path) -> None:
    """Users who may not create files in /dev may write to those that exist."""
    assert is_written_as_it_is(Path("/dev/stdout"))
    assert is_written_as_it_is(Path("/dev/null"))
    for path in (tmp_path / "new", tmp_path / "no" / "new", Path(__file__)):
        assert not is_written_as_it_is(path)


# ---- at the prompt of an ordinary user's lab ------------------------------

_SOMEBODY, _SOMEBODY_ELSE = 1000, 1001
_WRITE = "import sys; from pathlib import Path; from emu.output_dir import write_text; "
_WRITE += "write_text(Path(sys.argv[1]), 'told')"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may write to, like /tmp."""
    folder = Path(mkdtemp())
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def _write_in_a_lab(path: Path | str) -> subprocess.CompletedProcess[str]:
    """The result of a write by an ordinary user who is root in a user namespace."""
    user = ("setpriv", f"--reuid={_SOMEBODY}", f"--regid={_SOMEBODY}", "--clear-groups")
    return subprocess.run(
        [*user, "unshare", "--user", "--map-root-user", sys.executable, "-c", _WRITE, str(path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


@needs_root
@needs_python_for_all
def test_roots_links_are_followed_in_a_users_lab(open_folder: Path) -> None:
    """In the user namespace, root's files appear to belong to `nobody`:
    devices and system links."""
    assert _write_in_a_lab("/dev/stdout").stdout == "told"
    assert _write_in_a_lab("/dev/null").returncode == 0
    own = open_folder / "own"
    own.mkdir(mode=0o755)
    os.chown(own, _SOMEBODY, _SOMEBODY)
    (own / "link").symlink_to("file")
    os.lchown(own / "link", 0, 0)
    assert _write_in_a_lab(own / "link").returncode == 0
    assert (own / "file").read_text() == "told"


@needs_root
@needs_python_for_all
@pytest.mark.parametrize("owner", [0, _SOMEBODY_ELSE])
@pytest.mark.parametrize("place", ["", "folder"])
def test_ambiguous_owners_are_refused_in_a_users_lab(
    owner: int, place: str, open_folder: Path
) -> None:
    """In a folder that others may write to, root's files look like those of other users."""
    folder = open_folder / place
    folder.mkdir(exist_ok=True)
    if place:
        os.chown(folder, owner, owner)
    (open_folder / "file").write_text("kept")
    (open_folder / "file").chmod(0o666)
    (folder / "link").symlink_to(open_folder / "file")
    os.lchown(folder / "link", owner, owner)
    done = _write_in_a_lab(folder / "link")
    assert "link is a symbolic link of the user " in done.stderr
    assert (open_folder / "file").read_text() == "kept"
