"""IP over InfiniBand: any program of a host can use the emulated fabric."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from emu.wire.inspect import inspect
from tests.support.background_lab import at_home, lab_up
from tests.support.user import SECONDS, User, may_be_anybody, wait

SPEC = """
name: ib
fabric: ib
slowdown: 2000
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 200MB}]
"""
PING = ("exec", "h1", "--", "ping", "-c", "1", "-i", "0.2", "-w", "20", "h2")
SENDER = """
import hashlib, random, socket
sent = random.Random(1).randbytes(400_000)
print(hashlib.sha256(sent).hexdigest())
socket.create_connection(("h2", 5001)).sendall(sent)
"""
RECEIVER = """
import hashlib, socket
listener = socket.create_server(("h2", 5001))
print("listening", flush=True)
line, _ = listener.accept()
print(hashlib.file_digest(line.makefile("rb"), "sha256").hexdigest())
"""

pytestmark = [pytest.mark.usefixtures("lab_machine"), pytest.mark.timing]


@pytest.fixture
def me(myself: User) -> User:
    return at_home(myself)


def test_tcp_and_ping_cross_ipoib(with_tun: User) -> None:
    """Fragmented pings arrive as well, and every captured packet has valid checksums."""
    person = at_home(with_tun)
    path = person.home.parent / "left.pcapng"
    with lab_up(person, SPEC):
        assert "mtu 2044" in person.run_emu("exec", "h1", "--", "ip", "link", "show", "ib0").out
        _send_by_tcp(person)
        capture = person.emu("capture", "left:h1")
        assert capture.stdout is not None
        head = capture.stdout.read(4)
        large = person.run_emu(*PING[:-1], "-s", "5000", "h2")
        assert "5008 bytes from" in large.out, large
        capture.send_signal(signal.SIGINT)
        rest, _ = capture.communicate(timeout=SECONDS)
        path.write_bytes(head + rest)
    found = inspect(path)
    assert found.opcodes == {"UD_SEND_ONLY": 6}
    for checksum in (found.icrc, found.vcrc):
        assert checksum.to_json() == {"ok": 6, "bad": 0, "unchecked": 0}
    assert _tshark(path, "ip", "ip.len") == ["2044", "2044", "980"] * 2
    assert _tshark(path, "icmp", "icmp.checksum.status") == ["1", "1"]
    assert _tshark(path, "_ws.malformed", "frame.number") == []


def _send_by_tcp(person: User) -> None:
    """Send 400 KB by TCP and compare the hash at the far end."""
    server = person.emu("exec", "h2", "--", sys.executable, "-c", RECEIVER)
    assert server.stdout is not None
    assert server.stdout.readline() == b"listening\n"
    sent = person.run_emu("exec", "h1", "--", sys.executable, "-c", SENDER)
    assert len(sent.out) == 64 + 1, sent
    assert wait(server).out == sent.out


def _tshark(path: Path, shown: str, field: str) -> list[str]:
    if shutil.which("tshark") is None:
        pytest.skip("needs tshark: apt-get install tshark")
    command = ["tshark", "-n", "-r", str(path), "-Y", shown, "-T", "fields", "-e", field]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_ip_works_before_during_and_after_rdma(me: User) -> None:
    """The NICs of a workload take over the interfaces and return them."""
    with lab_up(me, SPEC):
        for words in (PING, ("traffic", "start"), PING, ("traffic", "stop"), PING):
            ended = me.run_emu(*words)
            assert ended.code == 0, ended


def test_a_lab_without_tun_devices_has_no_ib0(me: User) -> None:
    """Such a lab reports the lack and still carries RDMA."""
    hide = 'mount --bind /dev/null /dev/net/tun && exec "$@"'
    alone = ("unshare", "--mount", *(() if may_be_anybody() else ("--user", "--map-root-user")))
    poor = replace(me, prefix=(*me.prefix, *alone, "sh", "-c", hide, "sh"))
    with lab_up(poor, SPEC):
        (lab,) = json.loads(me.run_emu("status", "--json").out)["labs"]
        assert "hosts have no ib0" in lab["notes"][0]
        assert me.run_emu(*PING).code == 2
        refused = me.run_emu("mpirun", "--", "true")
        assert refused.code == 2
        assert "the hosts have no IP; see `emu status`" in refused.err
        assert me.run_emu("traffic", "start").code == 0


def test_mininets_prompt_resolves_host_names(me: User) -> None:
    path = me.home / "ib.emu.yml"
    path.write_text(SPEC)
    shell = me.emu("shell", path)
    out, err = shell.communicate(b"h1 ping -c 1 -W 10 h2\nexit\n", timeout=60)
    assert b"1 received" in out + err
