"""Captures of the cables of a running lab, by `emu capture` and by Wireshark."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from emu.wire.capture import Direction, Interface, LinkType
from emu.wire.inspect import inspect
from emu.wire.pcapng_stream import PcapngStreamWriter
from emu.wire.reader import open_capture
from emu.wireshark import install
from tests.support.background_lab import at_home, lab_up, status_of
from tests.support.lab_fabrics import INFINIBAND, ROCE
from tests.support.user import SECONDS, Ended, User, may_be_anybody, wait

PROFILE = Path(install.__file__).with_name("profile")

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")


@pytest.fixture
def me(myself: User) -> User:
    return at_home(myself)


def _tshark(user: User, *words: str) -> list[str]:
    process = user.start("tshark", *words)
    ended = wait(process)
    assert ended.code == 0, ended.err
    return ended.out.splitlines()


@pytest.mark.parametrize("spec", [ROCE, INFINIBAND], ids=["roce", "ib"])
def test_a_cable_is_captured_while_traffic_runs(me: User, spec: str) -> None:
    """Every frame is there and whole, in order for each direction, and none is malformed."""
    with lab_up(me, spec):
        file = me.home.parent / "cable.pcapng"
        frames = _capture_traffic(me, file, starts=1)
        found = inspect(file)
        assert not found.damage
        assert sum(found.opcodes.values()) >= 50
        lines = _tshark(me, "-r", str(file), "-T", "fields", "-e", "frame.time_epoch")
        assert len(lines) == frames
        for direction in (Direction.IN, Direction.OUT):
            assert _is_ordered(file, direction)
        assert _tshark(me, "-r", str(file), "-Y", "_ws.malformed") == []


def test_a_second_start_of_traffic_reuses_no_psn(me: User) -> None:
    """Queue pairs continue with the PSNs after those of the first start."""
    with lab_up(me, ROCE):
        file = me.home.parent / "twice.pcapng"
        _capture_traffic(me, file, starts=2)
        found = inspect(file)
        assert sum(sequence.packets for sequence in found.flows.values()) >= 2 * 49
        assert found.psn_totals() == (0, 0, 0)


def test_only_named_ports_have_a_history(me: User) -> None:
    """`--since-start` is refused for other ports, and shows earlier pings for a named port."""
    with lab_up(me, ROCE, "--set", 'capture=["left:h1"]'):
        assert me.run_emu("exec", "h2", "ping", "-c", "2", "-i", "0.2", "h1").code == 0
        refused = me.run_emu("capture", "left:right", "--since-start", "-w", "/dev/null")
        assert refused.code == 2
        assert "left:right has no history" in refused.err
        kept = me.run_emu("capture", "left:h1", "--since-start", "-c", "4", "-w", "/dev/null")
        assert (kept.code, kept.err) == (0, "4 frames captured\n")


def test_a_failed_capture_does_not_affect_the_next(me: User) -> None:
    """The failures are an unknown port, a full disk and a reader that closes the pipe."""
    with lab_up(me, ROCE):
        kept = me.home / "kept.pcapng"
        kept.write_bytes(b"of yesterday")
        wrong = me.run_emu("capture", "left:h11", "-w", str(kept))
        assert (wrong.code, wrong.err) == (
            2,
            "there is no port 'left:h11' (did you mean 'left:h1'?)\n",
        )
        assert kept.read_bytes() == b"of yesterday"
        kept.unlink()
        full = me.run_emu("capture", "left:h1", "-w", "/dev/full")
        assert (full.code, full.err) == (
            4,
            "/dev/full: No space left on device; the capture ends here\n",
        )
        reader = me.emu("capture", "left:h1")
        assert reader.stdout is not None
        reader.stdout.read(4)
        reader.stdout.close()
        assert me.run_emu("exec", "h2", "ping", "-c", "2", "-i", "0.2", "h1").code == 0
        assert wait(reader) == Ended(0, "", "the reader of the capture has ended\n")
        counted = me.emu("capture", "left:h1", "-c", "2", "-w", "/dev/null")
        while counted.poll() is None:
            assert me.run_emu("exec", "h2", "ping", "-c", "2", "-i", "0.2", "h1").code == 0
        assert counted.returncode == 0


def test_captures_end_with_their_lab(me: User) -> None:
    """The message says how many frames are in the capture."""
    with lab_up(me, ROCE):
        capture = me.emu("capture", "left:h1")
        assert capture.stdout is not None
        assert capture.stdout.read(4)
        assert me.run_emu("down").code == 0
        ended = capture.communicate(timeout=SECONDS)[1].decode()
        assert (capture.returncode, ended) == (
            4,
            "the lab pair has ended; 0 frames are in the capture\n",
        )


def test_cables_are_in_wiresharks_list_of_interfaces(user: User) -> None:
    """The user is an ordinary one, because root's Wireshark has only the system's extcap folder."""
    if not may_be_anybody() or "--reuid=65534" not in user.prefix:
        pytest.skip("needs root, to be an ordinary user")
    person = at_home(user)
    person.environment["WIRESHARK_EXTCAP_DIR"] = str(person.home / "extcap")
    with lab_up(person, ROCE):
        assert person.run_emu("wireshark").code == 0
        listed = "\n".join(_tshark(person, "-D"))
        assert re.findall(r"\S+@pair", listed) == [
            f"{port}@pair" for port in ("left:h1", "left:right", "right:h2", "right:left")
        ], listed
        shark = person.start("tshark", "-C", "emu", "-l", "-i", "left:h1@pair", "-c", "3")
        while shark.poll() is None:
            person.run_emu("exec", "h2", "ping", "-c", "2", "-i", "0.2", "h1")
        assert wait(shark).out.count("10.0.0.2") == 3
        assert person.run_emu("wireshark", "--remove").code == 0
        assert not (person.home / "extcap/emu").exists()
        shutil.rmtree(person.home / "extcap")
        shutil.rmtree(person.home / ".config", ignore_errors=True)


@pytest.mark.parametrize("file", ["colorfilters", "dfilter_buttons"])
def test_every_filter_of_the_profile_is_valid(file: str, tmp_path: Path) -> None:
    """tshark accepts each filter."""
    text = (PROFILE / file).read_text()
    pattern = r"^@[^@]+@([^@]+)@" if file == "colorfilters" else r'^"TRUE","[^"]+","([^"]+)"'
    filters = re.findall(pattern, text, re.MULTILINE)
    assert len(filters) >= 5
    empty = tmp_path / "empty.pcapng"
    with empty.open("wb") as stream:
        PcapngStreamWriter(stream, Interface("left:h1", LinkType.ETHERNET))
    for one in filters:
        command = ["tshark", "-r", str(empty), "-Y", one]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def _is_ordered(file: Path, direction: Direction) -> bool:
    with open_capture(file) as capture:
        times = [r.time_ns for r in capture if r.direction is direction]
    return len(times) > 1 and times == sorted(times)


def _wait_for_traffic(user: User) -> None:
    while status_of(user)[0]["traffic"]["state"] == "running":
        pass


def _capture_traffic(user: User, file: Path, *, starts: int) -> int:
    """Capture left:h1 during this many starts of traffic.

    Returns the frame count that emu prints.
    """
    capture = user.emu("capture", "left:h1")
    assert capture.stdout is not None
    head = capture.stdout.read(4)
    for _ in range(starts):
        assert user.run_emu("traffic", "start").code == 0
        _wait_for_traffic(user)
    capture.send_signal(signal.SIGINT)
    rest, said = capture.communicate(timeout=SECONDS)
    assert capture.returncode == 0, said
    file.write_bytes(head + rest)
    return int(said.decode().split()[0].replace(",", ""))
