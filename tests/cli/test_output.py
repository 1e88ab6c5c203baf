"""`emu` with output that is closed, full or unread, and with the shell's limits."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from emu.errors import HostError
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.messages import Failure, Ready
from emu.resources import allow_files, exhausted_resource

ROOT = Path(__file__).parents[2]
PAIR = str(ROOT / "topologies" / "pair.emu.yml")
FULL = "standard output: No space left on device; what was printed is not whole\n"
GONE = "standard output: its reader has ended, so that what follows was not printed\n"
_MANY = 1_000_000
CLOSED = "standard output: it is closed; what was printed is not whole\n"


def _emu(line: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The result of a shell line in which EMU is the command."""
    line = line.replace("EMU", f"{sys.executable} -m emu.cli.main")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_RUNTIME_DIR": str(tmp_path)}
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )


@pytest.mark.parametrize("verb", ["--version", "status --json", f"validate {PAIR}", "schema"])
@pytest.mark.parametrize(
    ("redirection", "says"), [(">/dev/full", FULL), ("| true", GONE), (">&-", CLOSED)]
)
def test_closed_or_full_output_is_reported(
    verb: str, redirection: str, says: str, tmp_path: Path
) -> None:
    """The exit code is 4, with one line, for long and short output."""
    done = _emu(f"EMU {verb} {redirection}", tmp_path)
    assert (done.returncode, done.stderr) == (4, says)


def test_a_run_without_output_is_reported(tmp_path: Path) -> None:
    """The rich library prints the tables of a run."""
    run = f"EMU run {PAIR} --clock virtual --out {tmp_path}/out"
    for redirection, says in ((">/dev/full", FULL), (">&-", CLOSED)):
        done = _emu(f"{run} {redirection}", tmp_path)
        assert (done.returncode, done.stderr.splitlines(keepends=True)[-1]) == (4, says)
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_nonblocking_output_is_written_completely(stream: str, tmp_path: Path) -> None:
    """Another process has set the full pipe to non-blocking mode."""
    program = "from emu.streams import guard_streams; guard_streams(); import sys; "
    program += f"print('x' * {_MANY}, file=sys.{stream}, flush=True)"
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    command, environment = [sys.executable, "-c", program], os.environ | {"PYTHONPATH": str(ROOT)}
    with (
        os.fdopen(reading, "rb") as reader,
        subprocess.Popen(command, env=environment, **{stream: writing}) as process,  # type: ignore[call-overload]
    ):
        os.close(writing)
        assert len(reader.read()) == _MANY + 1
    assert process.returncode == 0


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "<&- 2>&-"])
def test_closed_stderr_changes_nothing(redirection: str, tmp_path: Path) -> None:
    """The exit code and the output stay the same."""
    assert _emu(f"EMU status {redirection}", tmp_path).returncode == 0
    wrong = _emu(f"EMU down {redirection}", tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_no_file_takes_the_number_of_closed_stdout(tmp_path: Path) -> None:
    """The first opened file would otherwise get descriptor 1."""
    done = _emu(f"EMU run {PAIR} --clock virtual --out out --json >&-", tmp_path)
    assert done.returncode == 4
    assert (tmp_path / "out/summary.json").read_text().startswith("{")


@pytest.mark.parametrize("limit", ["-v 60000", "-v 150000", "-v 200000"])
def test_a_limit_on_memory_is_named(limit: str, tmp_path: Path) -> None:
    """Libraries in C and Rust end the process when they get no memory."""
    done = _emu(f"ulimit {limit}; EMU validate {PAIR}", tmp_path)
    kib = f"{int(limit.split()[1]):,}"
    assert done.returncode == 3
    assert done.stderr.startswith(f"this process may take {kib} KiB of memory, and needs 262,144;")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("kib", "says"),
    [
        (0, "there is no folder for temporary files in which this process can write; "),
        (1, "a file would become too large: this process may write files of 1 KiB; "),
    ],
)
def test_a_limit_on_file_size_is_named(kib: int, says: str, tmp_path: Path) -> None:
    """A traceback would exit with 1, which means a failed check."""
    run = f"EMU run {PAIR} --quiet --clock virtual --out out"
    without_coverage = "unset COVERAGE_PROCESS_CONFIG"  # it would write a file, too
    done = _emu(f"{without_coverage}; ulimit -f {kib}; {run}", tmp_path)
    assert (done.returncode, done.stderr.splitlines()[:-1]) == (3, [])
    assert done.stderr.startswith(says)


def test_an_internal_error_does_not_exit_with_1() -> None:
    """Exit code 1 means a failed check. The traceback is printed."""
    program = "from emu.cli import main; main.cli.main = lambda **_: 1 // 0; main.main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 4
    assert "ZeroDivisionError: integer division or modulo by zero\nthis is a bug" in done.stderr


def test_a_limit_on_open_files_is_named_first(tmp_path: Path) -> None:
    """Open vSwitch would wait for ever."""
    run = f"EMU run {PAIR} --clock exact --out {tmp_path}/out"
    done = _emu(f"ulimit -n 20; {run}", tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("a process may open 20 files here, and this lab needs 64;")


def test_a_soft_limit_on_files_is_raised_as_needed() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, before[1]))
        allow_files(90)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (100, before[1])
        allow_files(200)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (200, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "too many open files: this process may"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "memory has run out"),
        (MemoryError(), "memory has run out"),
        (ImportError("libx.so: failed to map segment from shared object"), "memory has run out"),
        (RuntimeError("can't start new thread"), "no more processes or threads can be started"),
        (OSError(errno.ENOSPC, "No space left", "/x/raw"), "/x/raw: there is no space left"),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found in []"), "there is"),
    ],
)
def test_missing_resources_are_named(error: Exception, says: str) -> None:
    """The resource is named even if another error followed, and the
    error crosses a lab unchanged."""
    found = exhausted_resource(error)
    assert isinstance(found, HostError)
    assert str(found).startswith(says)
    consequence = ValueError("consequence")
    consequence.__cause__ = error
    assert str(exhausted_resource(consequence)) == str(found)
    assert Failure.of(consequence).kind == "host"


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOENT, "x"), BlockingIOError(errno.EAGAIN, "x"), ValueError("x")]
)
def test_other_errors_are_no_missing_resource(error: Exception) -> None:
    assert exhausted_resource(error) is None


def test_files_lost_on_a_channel_raise_an_error() -> None:
    """The receiver is at its limit of open files and would otherwise wait for ever."""
    near, far = channel_pair()
    sender = Channel(far)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[socket.socket] = []
    sender.send(Ready(1), [near.fileno()])
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (near.fileno() + 1, before[1]))
        with suppress(OSError):
            held.extend(socket.socket() for _ in range(1000))
        with pytest.raises(OSError, match="Too many open files"):
            near.receive()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for each in held:
            each.close()
    near.close()
    sender.close()
