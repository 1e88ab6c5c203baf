"""The folder of lab names: its entries, which of them `emu` removes, and which stay."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from emu.cli.status import command as status
from emu.cli.up import command as up
from emu.daemon import folder, registry
from emu.daemon.registry import SilentLab
from emu.errors import FabricError, UsageError
from emu.lab.ipc.codec import Json
from tests.support.user import NOBODY, may_be_anybody


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the folder, which does not exist yet, in a new runtime folder."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    return runtime / "emu"


def _socket(path: Path, mode: int = 0o600) -> None:
    """Leave a socket at `path` that no process has open."""
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
    path.chmod(mode)


def _foreign_socket(path: Path) -> None:
    if not may_be_anybody():
        pytest.skip("needs root, to make a file of somebody else's")
    _socket(path)
    os.chown(path, NOBODY, NOBODY)


def _second_name(path: Path) -> None:
    _socket(path.parent.parent / "elsewhere")
    os.link(path.parent.parent / "elsewhere", path)


FOREIGN: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "file": ("README.md", lambda path: path.write_text("mine"), "it is a file"),
    "folder": ("sub", lambda path: path.mkdir(), "it is a folder"),
    "FIFO": ("pipe", lambda path: os.mkfifo(path, 0o600), "it is a FIFO"),
    "symlink": ("link", lambda path: path.symlink_to("/etc/hosts"), "it is a symbolic link"),
    "dangling-symlink": ("link", lambda path: path.symlink_to("gone"), "it is a symbolic link"),
    "foreign-socket": ("pair", _foreign_socket, f"it belongs to the user {NOBODY}"),
    "open-socket": ("pair", lambda path: _socket(path, 0o777), "its mode is 777"),
    "second-name": ("pair", _second_name, "it has more than one name"),
    "odd-name": ("-rf", _socket, "this is not the name of a lab"),
    "hidden": (".bashrc", lambda path: path.write_text("mine"), "this is not the name of a lab"),
    "record-link": (".a.ended", lambda path: path.symlink_to("/etc/hosts"), "it is a symbolic"),
    "record-folder": (".a.ended", lambda path: path.mkdir(), "it is a folder"),
    "record-mode": (".a.ended", lambda path: path.touch(0o644), "its mode is 644"),
}
"""Kind of foreign entry -> its name, the function that creates it, and the text of the error."""


def _tree(path: Path) -> dict[str, os.stat_result]:
    return {str(one): os.lstat(one) for one in (path, *path.rglob("*"))}


@pytest.mark.parametrize("kind", list(FOREIGN))
@pytest.mark.parametrize(
    "act",
    [
        registry.names,
        registry.ended,
        lambda: registry.claim("new"),
        lambda: registry.dial(None),
        lambda: registry.dial("pair"),
        lambda: registry.forget([registry.Ended("pair", "why", None)]),
    ],
    ids=["names", "ended", "claim", "dial", "dial-by-name", "forget"],
)
def test_a_foreign_entry_is_named_and_not_removed(
    kind: str, act: Callable[[], object], names: Path
) -> None:
    """This holds for every kind of entry and every operation."""
    name, make, says = FOREIGN[kind]
    names.mkdir(mode=0o700)
    make(names / name)
    before = {path: (found.st_ino, found.st_size) for path, found in _tree(names).items()}
    with pytest.raises(UsageError) as told:
        act()
    assert f"{names / name}: {says}" in str(told.value)
    assert "nothing was removed" in str(told.value)
    assert before == {path: (found.st_ino, found.st_size) for path, found in _tree(names).items()}


def test_all_foreign_entries_are_named_at_once(names: Path) -> None:
    """The user can move all of them in one step."""
    names.mkdir(mode=0o700)
    (names / "one").mkdir()
    (names / "two").write_text("mine")
    result = CliRunner().invoke(status, [])
    assert isinstance(result.exception, UsageError)
    first, second, *_ = str(result.exception).splitlines()
    assert (first, second) == (
        f"{names / 'one'}: it is a folder, and not made by `emu`",
        f"{names / 'two'}: it is a file, and not made by `emu`",
    )


@pytest.mark.parametrize("name", ["pair", "README.md"])
def test_release_removes_only_a_socket_of_ours(name: str, names: Path) -> None:
    """A file with the name of the lab stays."""
    names.mkdir(mode=0o700)
    (names / name).write_text("mine")
    registry.release(name)
    assert (names / name).read_text() == "mine"


def test_a_folder_that_is_a_symlink_is_refused(names: Path, tmp_path: Path) -> None:
    """The target of the link is neither read nor changed."""
    target = tmp_path / "documents"
    target.mkdir(mode=0o700)
    _socket(target / "pair")
    names.symlink_to(target)
    for act in (registry.names, lambda: registry.claim("pair"), lambda: registry.release("pair")):
        with pytest.raises(UsageError, match="it is a symbolic link, not a folder"):
            act()
    assert [path.name for path in target.iterdir()] == ["pair"]
    assert names.is_symlink()


def test_a_file_in_place_of_the_folder_is_refused(names: Path) -> None:
    names.write_text("mine")
    for act in (registry.names, lambda: registry.claim("pair")):
        with pytest.raises(UsageError, match="it is a file, not a folder"):
            act()
    assert names.read_text() == "mine"


def test_a_folder_that_others_may_enter_is_refused(names: Path) -> None:
    """Other users could add entries or answer in place of a lab."""
    names.mkdir()
    names.chmod(0o755)
    _socket(names / "pair")
    with pytest.raises(UsageError, match=f"mode is 755.*`chmod 700 {names}`"):
        registry.names()
    assert (names / "pair").exists()


@pytest.mark.skipif(not may_be_anybody(), reason="needs root, to make a folder of somebody else's")
def test_a_folder_of_another_user_is_refused(names: Path) -> None:
    names.mkdir(mode=0o700)
    os.chown(names, NOBODY, NOBODY)
    with pytest.raises(UsageError, match=f"the folder belongs to the user {NOBODY}, not to you"):
        registry.claim("pair")


def test_an_empty_folder_of_the_user_stays(names: Path) -> None:
    """Only the release of the last name removes the folder."""
    names.mkdir(mode=0o700)
    assert registry.names() == []
    assert names.is_dir()
    registry.claim("pair").close()
    registry.release("pair")
    assert not names.exists()


@contextmanager
def _claimed(name: str) -> Iterator[socket.socket]:
    with closing(registry.claim(name)) as listener:
        yield listener
    registry.release(name)


def test_a_name_and_its_folder_are_closed_to_others(names: Path) -> None:
    """The modes do not depend on the umask."""
    before = os.umask(0)
    try:
        with _claimed("pair"):
            assert stat.S_IMODE(names.stat().st_mode) == 0o700
            assert stat.S_IMODE((names / "pair").stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_listing_names_connects_to_no_lab(names: Path) -> None:
    """The list needs no connection to a lab."""
    with _claimed("pair") as listener:
        assert registry.names() == ["pair"]
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_stopped_lab_does_not_block_clients(names: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backlog of the stopped lab is full. Other labs stay reachable."""
    monkeypatch.setattr(registry, "_BACKLOG", 0)
    with _claimed("stopped"), _claimed("working") as working:
        calls = [registry.dial("stopped")[1]]  # fills the queue of calls: one more than the backlog
        with pytest.raises(SilentLab, match=r"accepts no more connections.*`emu down stopped`"):
            registry.dial("stopped")
        assert registry.names() == ["stopped", "working"]
        name, channel = registry.dial("working")
        assert name == "working"
        assert working.accept()
        for each in (*calls, channel):
            each.close()


def test_a_lock_that_is_not_released_is_an_error(
    names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An `emu` that was stopped at the wrong moment keeps the lock."""
    monkeypatch.setattr(folder, "_SECONDS_TO_GET_THE_LOCK", 0.0)
    parent = os.open(names.parent, os.O_RDONLY)
    try:
        fcntl.flock(parent, fcntl.LOCK_EX)
        with pytest.raises(FabricError, match="another process has kept this folder locked"):
            registry.names()
    finally:
        os.close(parent)
    assert registry.names() == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_folder_that_cannot_be_locked_is_an_error(
    number: int, names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS without a lock manager and some other file systems have no locks."""

    def flock(file: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(UsageError) as told:
        registry.names()
    assert str(told.value) == (
        f"{names.parent}: this folder cannot be locked ({os.strerror(number)}), so the names of "
        "labs cannot be stored there; set XDG_RUNTIME_DIR to a folder of your own on a local disk"
    )


def test_a_folder_that_takes_no_socket_is_an_error(
    names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems have no sockets. Nothing is left in the folder."""

    class Refused(socket.socket):
        def bind(self, address: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    with monkeypatch.context() as patched:
        patched.setattr("socket.socket", Refused)
        with pytest.raises(UsageError, match=f"{names}: no socket can be made there "):
            registry.claim("pair")
    assert (registry.names(), registry.ended()) == ([], [])


def test_a_runtime_folder_in_which_nothing_can_be_made_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """/proc is writable for root, and takes no folder."""
    if os.geteuid() != 0:
        monkeypatch.setattr("emu.daemon.folder._is_writable", lambda runtime: True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/proc")
    with pytest.raises(UsageError, match=r"set XDG_RUNTIME_DIR to a folder of your own"):
        registry.claim("pair")
    assert registry.names() == []


@pytest.mark.parametrize("exists", [False, True])
def test_up_reports_an_unwritable_runtime_folder(
    exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the replacement. With a writable folder there is no message."""
    runtime = tmp_path / "runtime"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("emu.runtime.real.slowdown_for", lambda *_: (1.0, ()))
    monkeypatch.setattr("emu.daemon.up.bring_up", lambda *_: None)
    spec = tmp_path / "pair.emu.yml"
    spec.write_text("topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 1}\n")
    said = f"XDG_RUNTIME_DIR is {runtime}, where you cannot write: "
    if exists:
        runtime.mkdir(mode=0o700)
    told = CliRunner().invoke(up, [str(spec)]).stderr
    assert told == (
        ""
        if exists
        else f"{said}the names of labs are stored in {tmp_path / 'cache' / 'emu-labs'}\n"
    )


def test_status_queries_all_labs_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this test each lab answers only after all queries have been sent."""
    all_asked = threading.Barrier(3)

    def document(name: str) -> dict[str, object]:
        all_asked.wait(20)
        raise SilentLab(name, "has not answered for 10 s")

    monkeypatch.setattr("emu.cli.status._document", document)
    monkeypatch.setattr(registry, "names", lambda: ["a", "b", "c"])
    monkeypatch.setattr(registry, "ended", list)
    result = CliRunner().invoke(status, [])
    assert [line[:9] for line in result.stderr.splitlines()] == [
        "the lab a",
        "the lab b",
        "the lab c",
    ]


def test_a_user_without_a_home_folder_gets_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is neither HOME nor an entry in the list of users, as in containers."""

    def nobody(uid: int) -> None:
        raise KeyError(uid)

    for variable in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    result = CliRunner().invoke(status, [])
    assert isinstance(result.exception, UsageError)
    assert str(result.exception) == (
        f"you have no home folder: HOME is not set, and this machine knows no user {os.geteuid()};"
        " set HOME, or XDG_CACHE_HOME"
    )


def test_callers_get_the_process_id_of_the_owner(names: Path) -> None:
    """The kernel gives the id of the listening process."""
    with _claimed("pair"), closing(registry.dial("pair")[1]) as channel:
        assert channel.peer_pid() == os.getpid()


def test_an_interrupted_claim_takes_no_name(names: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt comes between bind and listen."""

    class Interrupted(socket.socket):
        def listen(self, *backlog: int) -> None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("socket.socket", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            registry.claim("pair")
    assert (registry.names(), registry.ended()) == ([], [])


def test_status_gives_the_reason_of_failed_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    traffic: Json = {
        "state": "failed",
        "flows": [],
        "fidelity": None,
        "error": "the shim is silent",
    }
    known: Json = {
        "name": "b",
        "up_seconds": 1,
        "spec": {},
        "clock": "real",
        "slowdown": 5,
        "plane": "ovs",
        "notes": [],
    }
    known |= {"marker": "none", "diagnosis": [], "sweeps": [], "traffic": traffic}
    known |= {"programs": {}, "stopped_programs": {}}
    monkeypatch.setattr("emu.cli.status._document", lambda name: known)
    told = CliRunner().invoke(status, ["b"]).stdout.splitlines()
    assert told[0].endswith("traffic: failed")
    assert told[1] == "  its traffic has failed: the shim is silent"


# ---- labs that have died -------------------------------------------------


def test_the_reason_of_an_end_is_shown_once(names: Path) -> None:
    """Nothing is left of the lab afterwards."""
    registry.claim("pair").close()
    registry.release("pair", "the shim died (signal 9)")
    with pytest.raises(UsageError, match="pair has ended: the shim died"):
        registry.dial("pair")
    told = CliRunner().invoke(status, []).output
    assert "pair  has ended at 2" in told
    assert told.endswith(": the shim died (signal 9)\n")
    assert not names.exists()
    assert "has ended" not in CliRunner().invoke(status, []).output


def test_a_killed_owner_is_given_as_the_reason(names: Path) -> None:
    """The owner's socket shows its end until the reason has been displayed."""
    registry.claim("pair").close()
    assert registry.names() == []
    (dead,) = registry.ended()
    assert (dead.name, dead.at) == ("pair", None)
    assert "its owner process was killed" in dead.reason
    registry.forget([dead])
    assert not names.exists()


def test_a_name_is_free_after_the_labs_end(names: Path) -> None:
    """A new lab replaces what is left of the old one."""
    registry.claim("pair").close()
    registry.release("pair", "the shim died (signal 9)")
    with _claimed("pair"):
        assert (registry.names(), registry.ended()) == (["pair"], [])
    assert not names.exists()


def test_forget_keeps_a_new_lab_of_the_same_name(names: Path) -> None:
    """The new lab came up while the end of the old one was displayed."""
    registry.claim("pair").close()
    dead = registry.ended()
    with _claimed("pair"):
        registry.forget(dead)
        assert registry.names() == ["pair"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"reason": "why"}', '{"at": "x", "reason": 1}'])
def test_an_incomplete_record_is_accepted(text: str, names: Path) -> None:
    """The process that wrote the record was killed."""
    names.mkdir(mode=0o700)
    (names / ".pair.ended").touch(0o600)
    (names / ".pair.ended").write_text(text)
    (dead,) = registry.ended()
    assert dead.reason == "its owner process was killed while it recorded the reason"
    registry.forget([dead])
    assert not names.exists()


def test_status_goes_on_when_a_lab_ends(names: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other labs are still shown."""
    known: Json = {
        "name": "b",
        "up_seconds": 1,
        "spec": {},
        "clock": "real",
        "slowdown": 5,
        "plane": "ovs",
        "notes": [],
    }
    known |= {
        "marker": "none",
        "diagnosis": [],
        "sweeps": [],
        "programs": {},
        "stopped_programs": {},
        "traffic": {"state": "none", "flows": [], "fidelity": None, "error": None},
    }

    def document(name: str) -> dict[str, object]:
        if name == "a":
            raise FabricError("the lab a has ended")
        if name == "c":
            raise SilentLab("c", "has not answered for 10 s")
        return known

    monkeypatch.setattr("emu.cli.status._document", document)
    monkeypatch.setattr(registry, "names", lambda: ["a", "b", "c"])
    result = CliRunner().invoke(status, [])
    assert result.exit_code == 4
    assert result.stdout.startswith("b  up 1 s")
    assert "its traffic has failed" not in result.stdout
    assert result.stderr.splitlines()[0] == "the lab a has ended"
    assert "the lab c has not answered for 10 s: " in result.stderr
