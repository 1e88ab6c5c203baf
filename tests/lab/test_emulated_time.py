"""`emu exec --emulated`: programs with the fabric's clock, and refusals where
the clock would not hold."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from emu.errors import HostError, UsageError
from emu.lab import emulated_time as module
from emu.lab.emulated_time import emulated_time
from tests.support.background_lab import at_home, lab_up
from tests.support.lab_fabrics import ROCE
from tests.support.needs import need
from tests.support.user import User, wait

pytestmark = pytest.mark.timing

ELF = b"\x7fELF\x02" + bytes(27) + (64).to_bytes(8, "little") + bytes(14)
"""First bytes of a 64-bit program, whose program headers follow this header of 64 bytes."""


def _program(path: Path, loader: bytes | None, more: bytes = b"") -> Path:
    """An ELF file that names this loader."""
    header = ELF + (56).to_bytes(2, "little") + (1 if loader else 0).to_bytes(2, "little")
    header = header.ljust(64, b"\0")
    segment = (3).to_bytes(4, "little") + bytes(4) + (120).to_bytes(8, "little") + bytes(16)
    segment += (len(loader or b"") + 1).to_bytes(8, "little")
    path.write_bytes(header + segment.ljust(56, b"\0") + (loader or b"") + b"\0" + more)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "library", lambda: Path("/lib/libfaketimeMT.so.1"))


def test_the_programs_clock_is_slower_by_the_slowdown(tmp_path: Path) -> None:
    program = _program(tmp_path / "a", b"/lib64/ld-linux-x86-64.so.2")
    assert emulated_time([str(program)], 8000) == {
        "LD_PRELOAD": "/lib/libfaketimeMT.so.1",
        "FAKETIME": "+0 x0.000125",
    }


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["ping", "h2"], "ping: the times of replies are measured by the kernel's clock"),
        (["/usr/bin/tcpdump"], "tcpdump: the times of packets are measured by the kernel's"),
        (["iperf3", "-c", "h2", "-J"], "iperf3 -J: its JSON has TCP's round trips"),
        (["iperf3", "--json-stream"], "iperf3 --json-stream: its JSON has TCP's round trips"),
        (["iperf3", "--fq-rate=1G"], "iperf3 --fq-rate=1G: the kernel would pace by its own"),
    ],
)
def test_programs_that_show_kernel_times_are_refused(command: list[str], says: str) -> None:
    """Their output would mix times of the kernel with times of the fabric."""
    with pytest.raises(UsageError) as told:
        emulated_time(command, 1000)
    assert str(told.value).startswith(f"--emulated {says}")
    assert "leave --emulated out" in str(told.value)


@pytest.mark.parametrize(
    ("loader", "more", "says"),
    [
        (None, b"", "it is statically linked"),
        (b"/lib/ld-musl-x86_64.so.1", b"", "its loader is /lib/ld-musl-x86_64.so.1, not glibc's"),
        (b"/lib64/ld-linux-x86-64.so.2", b"\xff Go buildinf:", "it is written in Go"),
    ],
)
def test_programs_that_ignore_preload_are_refused(
    loader: bytes | None, more: bytes, says: str, tmp_path: Path
) -> None:
    """A script is refused for its interpreter."""
    program = _program(tmp_path / "a", loader, more)
    script = tmp_path / "script"
    script.write_text(f"#!{program}\n")
    script.chmod(0o755)
    for command in (program, script):
        with pytest.raises(UsageError, match=re.escape(says)):
            emulated_time([str(command)], 1000)


def test_a_32_bit_program_is_refused(tmp_path: Path) -> None:
    program = _program(tmp_path / "a", b"/lib/ld-linux.so.2")
    program.write_bytes(b"\x7fELF\x01" + program.read_bytes()[5:])
    with pytest.raises(
        UsageError, match="it is not a 64-bit program and uses the machine's clock, which"
    ):
        emulated_time([str(program)], 10)


def test_setuid_programs_are_refused(tmp_path: Path) -> None:
    """The loader ignores LD_PRELOAD for such programs."""
    program = _program(tmp_path / "a", b"/lib64/ld-linux-x86-64.so.2")
    program.chmod(program.stat().st_mode | stat.S_ISUID)
    with pytest.raises(UsageError, match="it has more rights than you"):
        emulated_time([str(program)], 1000)


def test_without_the_library_its_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(module, "_LIBRARY", "*/none/libfaketimeMT.so.1")
    with pytest.raises(HostError, match=r"; (sudo )?apt-get install libfaketime$"):
        emulated_time([str(_program(tmp_path / "a", b"/lib64/ld-linux-x86-64.so.2"))], 1000)
    assert module.why_missing() == "libfaketime is not installed"


def test_iperf3_shows_the_fabrics_rates(myself: User) -> None:
    """A link of 100 Gbit/s shows at most this rate at any slowdown, and a
    sleep takes emulated time."""
    need("iperf3", "libfaketime")
    me = at_home(myself)
    with lab_up(me, ROCE, "--set", "slowdown=2000"):
        server = me.emu("exec", "--emulated", "h2", "--", "iperf3", "-s", "-1", "--forceflush")
        assert server.stdout is not None
        while b"listening" not in server.stdout.readline():
            pass
        command = ("iperf3", "-c", "h2", "-n", "10M", "-i", "0", "-f", "g")
        client = me.run_emu("exec", "--emulated", "h1", "--", *command)
        assert client.code == 0, client
        assert wait(server).code == 0
        (rate,) = re.findall(r"([\d.]+) Gbits/sec +receiver", client.out)
        assert 20 < float(rate) < 100
        program = "import json, time; a = time.monotonic(); time.sleep(1e-4); "
        program += "print(json.dumps(time.monotonic() - a))"
        python = "/usr/bin/python3"
        slept = me.run_emu("exec", "--emulated", "h1", "--", python, "-c", program)
        assert 9e-5 < json.loads(slept.out) < 1e-1
        refused = me.run_emu("exec", "--emulated", "h1", "--", "ping", "h2")
        assert (refused.code, refused.out) == (2, "")
