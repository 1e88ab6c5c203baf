"""`capture` at the prompt of a lab, with a stub in place of the lab's tap."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from mininet.cli import CLI

from emu.lab.ipc.queries import PortsSnapshot
from emu.lab.net import FabricNet
from emu.lab.shell import FabricPrompt
from emu.spec.model import Spec, spec_from_text
from emu.wire.capture import Direction, LinkType
from emu.wire.raw import RAW_RECORD, RawKind, lost_record
from emu.wire.reader import open_capture

TREE = "topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 2}\n"
FRAMES = 20_000
"""More frames than a socket buffer holds, so the prompt reads before the last one is sent."""
PAYLOAD = bytes(64)


def nodes(**named: object) -> FabricNet:
    """Mininet's network with the nodes that the prompt looks at."""
    return cast(FabricNet, named)


class Tap:
    """A stub that sends frames for a port, calls `then`, and waits for the end of the capture."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.ports: list[str] = []
        self._then = then

    def __call__(self, port: str) -> int:
        self.ports.append(port)
        near, far = socket.socketpair()
        threading.Thread(target=self._send, args=(near,), daemon=True).start()
        return far.detach()

    def _send(self, near: socket.socket) -> None:
        with near:
            near.sendall(b"".join(map(record, range(FRAMES))) + lost_record(7))
            self._then()
            assert near.recv(1) == b""
            near.sendall(record(FRAMES))


class Echo:
    """A node that finishes each command at once and records its input."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.keys = ""
        self.waiting = False
        self.stdout = Path(os.devnull).open()  # noqa: SIM115, it is always ready to be read

    def sendCmd(self, command: str) -> None:  # noqa: N802, Mininet's name
        self.commands.append(command)
        self.waiting = True

    def monitor(self) -> str:
        self.waiting = False
        return f"{self.commands[-1]} is done\n"

    def write(self, keys: str) -> None:
        self.keys += keys


def record(number: int) -> bytes:
    head = (number * 1_000_000, number, 0, 64, 64, RawKind.ETHERNET, Direction.IN.value, 0)
    return RAW_RECORD.pack(*head) + PAYLOAD


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder.

    Standard input is /dev/null, which Mininet examines when it is imported.
    """
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with Path(os.devnull).open() as keyboard:
        monkeypatch.setattr(CLI.__init__, "__defaults__", (keyboard, None))
        yield tmp_path
    signal.signal(signal.SIGINT, before)


def spec(fabric: str = "roce") -> Spec:
    return spec_from_text(f"fabric: {fabric}\n{TREE}".encode(), source="t.emu.yml")


def no_ports() -> PortsSnapshot:
    return PortsSnapshot(0, {})


def prompt(folder: Path, tap: Tap, *lines: str, fabric: str = "roce") -> FabricPrompt:
    """A prompt that has carried out these lines."""
    script = folder / "script"
    script.write_text("".join(f"{line}\n" for line in lines))
    return FabricPrompt(nodes(), spec(fabric), no_ports, tap, script=str(script))


@pytest.mark.parametrize(
    ("line", "name"),
    [("capture leaf1:h1", "leaf1:h1.pcapng"), ("capture leaf1:h1 two words", "two words")],
)
def test_ctrl_c_ends_a_capture_but_not_the_prompt(
    line: str, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file has every frame, including those in flight. The next command follows."""
    tap = Tap(ctrl_c)
    prompt(folder, tap, line, "capture leaf1:h2 next")
    assert tap.ports == ["leaf1:h1", "leaf1:h2"]
    for file in (folder / name, folder / "next"):
        with open_capture(file) as capture:
            frames = list(capture)
        assert [frame.time_ns for frame in frames] == [n * 1000 for n in range(FRAMES + 1)]
        assert {frame.data for frame in frames} == {PAYLOAD}
    said = capsys.readouterr().out
    assert f"capturing to {name} until Ctrl-C\n20,001 frames captured\n7 are missing" in said
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_infiniband_capture_has_erf_records(folder: Path) -> None:
    prompt(folder, Tap(ctrl_c), "capture leaf1:h1", fabric="ib")
    with open_capture(folder / "leaf1:h1.pcapng") as capture:
        assert {frame.linktype for frame in capture} == {LinkType.ERF}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("capture leaf1:h9", "there is no port 'leaf1:h9' (did you mean 'leaf1:h"),
        ("capture", "capture needs a port, e.g. capture spine1:leaf1\n"),
        ("capture leaf1:h1 gone/x.pcapng", "gone/x.pcapng: No such file or directory\n"),
    ],
)
def test_a_refused_capture_leaves_no_file(
    line: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tap = Tap(ctrl_c)
    prompt(folder, tap, line)
    assert said in capsys.readouterr().out
    assert tap.ports == []
    assert [file.name for file in folder.iterdir()] == ["script"]


def test_every_line_of_a_script_is_a_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines come from standard input, which is a file."""
    script = folder / "script"
    script.write_text("h1 ping one\nh1 ping two\nh1 ping three\n")
    node = Echo()
    with script.open() as lines, node.stdout:
        monkeypatch.setattr(CLI.__init__, "__defaults__", (lines, None))
        monkeypatch.setattr("sys.stdin", lines)
        FabricPrompt(nodes(h1=node), spec(), no_ports, Tap(ctrl_c))
    assert node.commands == ["ping one", "ping two", "ping three"]
    assert node.keys == ""


def test_ports_are_completed_before_and_after_the_colon(folder: Path) -> None:
    """readline begins a new word at a colon. File names are not completed."""
    own = prompt(folder, Tap(ctrl_c))

    def complete(line: str) -> list[str]:
        begins = max(line.rfind(" "), line.rfind(":")) + 1
        return own.complete_capture(line[begins:], line, begins, len(line))

    assert complete("capture leaf2") == ["leaf2:h3", "leaf2:h4", "leaf2:spine1"]
    assert complete("capture leaf2:h") == ["h3", "h4"]
    assert complete("capture leaf2:h3 le") == []
    assert len(complete("capture ")) == 8
