"""The fork server of a lab, without a lab."""

from __future__ import annotations

import subprocess
import sys

from tests.support.user import ROOT, SECONDS

TCP = '(sys.executable, "-m", "emu.lab.tcp.tcp_main")'
BEFORE = """
import errno, os, signal, sys
from contextlib import closing
from pathlib import Path
from emu.lab.fork_server import ForkServer
from emu.lab.ipc.channel import channel_pair
"""
START = """
server = ForkServer.start(os.open(os.devnull, os.O_RDONLY))
channel, far = channel_pair()
"""


def printed(script: str) -> str:
    """What a script prints after it has started a server."""
    command = [sys.executable, "-c", BEFORE + script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_process_is_named_and_works() -> None:
    """It ends with its channel, as every process of a lab does."""
    says = printed(
        f"""{START}
pid = server.run({TCP}, far.fileno())
far.close()
print(channel.receive().pid == pid, Path(f"/proc/{{pid}}/comm").read_text().strip())
end = os.pidfd_open(pid)
channel.close()
import select
print(bool(select.select([end], [], [], {SECONDS})[0]))
"""
    )
    assert says == "True emu-tcp\nTrue\n"


def test_only_the_labs_own_modules_are_forked() -> None:
    says = printed(
        f"""{START}
python = (sys.executable, "-m")
for command in ({TCP}, (*python, "tests.support.stub_nics"), (*python, "tests.x", {TCP}[-1])):
    print(server.can_run(command))
"""
    )
    assert says == "True\nFalse\nFalse\n"


def test_a_machine_without_room_for_a_process_is_an_error() -> None:
    """Neither process that the server forks may fail without one."""
    for succeed in (0, 1):
        says = printed(
            f"""
fork, left = os.fork, [1 + {succeed}]
def fork_until_full():
    left[0] -= 1
    if left[0] < 0:
        raise BlockingIOError(errno.EAGAIN, "")
    return fork()
os.fork = fork_until_full
{START}
try:
    server.run({TCP}, far.fileno())
except BlockingIOError as error:
    print(error.strerror)
"""
        )
        assert says == "Resource temporarily unavailable\n"


def test_without_the_server_there_is_no_process() -> None:
    says = printed(
        f"""{START}
os.kill(server.pid, signal.SIGKILL)
os.waitpid(server.pid, 0)
try:
    server.run({TCP}, far.fileno())
except EOFError:
    print("ended")
"""
    )
    assert says == "ended\n"
