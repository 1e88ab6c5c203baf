"""The RDMA NIC of a host in /sys, as programs of `emu exec` see it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.background_lab import at_home, lab_up
from tests.support.lab_fabrics import INFINIBAND, ROCE
from tests.support.printed import fields
from tests.support.traces import Inside
from tests.support.user import SECONDS, Ended, User, wait

pytestmark = pytest.mark.timing

needs_diags = pytest.mark.skipif(
    shutil.which("ibstat") is None or shutil.which("ibstatus") is None,
    reason="needs infiniband-diags: apt-get install infiniband-diags",
)
DATA_PACKETS = 49
"""200 KB in packets of 4096 bytes."""
PORT = "/sys/class/infiniband/emu_0/ports/1"
ON_ROCE = {
    "default gid": "0000:0000:0000:0000:0000:ffff:0a00:0001",
    "base lid": "0x0",
    "sm lid": "0x0",
    "state": "4: ACTIVE",
    "phys state": "5: LinkUp",
    "rate": "100 Gb/sec (4X EDR)",
    "link_layer": "Ethernet",
}
ON_INFINIBAND = {
    **ON_ROCE,
    "default gid": "fe80:0000:0000:0000:0000:0000:0020:0003",
    "base lid": "0x1",
    "sm lid": "0x1",
    "link_layer": "InfiniBand",
}


def run(user: User, *words: str) -> Ended:
    ended = user.run_emu("exec", *words)
    assert (ended.code, ended.err) == (0, ""), ended
    return ended


@needs_diags
@pytest.mark.parametrize(
    ("spec", "status", "guid"),
    [
        (ROCE, ON_ROCE, "0x00000afffe000001"),
        (INFINIBAND, ON_INFINIBAND, "0x0000000000200002"),
    ],
    ids=["roce", "infiniband"],
)
def test_ibstat_shows_the_nic(user: User, spec: str, status: dict[str, str], guid: str) -> None:
    """The kernel's own classes are still there, and show the host's interfaces alone. A program
    with --no-rdma sees what it would have seen. The lab does no more work after the programs."""
    me = at_home(user)
    with lab_up(me, spec) as lab:
        before = threads(lab)
        shown = fields(run(me, "h1", "--", "ibstat").out)
        assert (shown["CA type"], shown["Node GUID"]) == ("emu", guid)
        assert (shown["State"], shown["Rate"]) == ("Active", "100")
        told = fields(run(me, "h1", "--", "ibstatus").out)
        assert {name: told[name] for name in status} == status
        seen = run(me, "h1", "--", "cat", "/sys/class/net/h1-eth0/address").out
        assert seen == "02:00:0a:00:00:01\n"
        listed = run(me, "h1", "--", "ls", "/sys/class/net").out
        assert "h1-eth0" in listed
        assert "h2-eth0" not in listed
        outside = me.run_emu("exec", "--no-rdma", "h1", "--", "ls", "/sys/class/infiniband/emu_0")
        assert outside.code != 0
        on_switch = me.run_emu("exec", "left", "--", "ls", "/sys/class/infiniband/emu_0")
        assert on_switch.code != 0
        assert run(me, "h2", "--", "cat", f"{PORT}/../../node_desc").out == "h2\n"
        wait_until(lambda: threads(lab) == before)


@pytest.mark.parametrize("spec", [ROCE, INFINIBAND], ids=["roce", "infiniband"])
def test_counters_and_states_follow_the_fabric(myself: User, spec: str) -> None:
    """Counters go on from one workload to the next. One program sees all changes."""
    me = at_home(myself)
    with lab_up(me, spec):
        reader = me.emu("exec", "h1", "--", "sh")

        def read(file: str) -> str:
            assert reader.stdin is not None
            assert reader.stdout is not None
            reader.stdin.write(f"cat {PORT}/{file}\n".encode())
            return reader.stdout.readline().decode().strip()

        sent = "counters/port_xmit_packets"
        assert read(sent) == "0"
        assert me.run_emu("traffic", "start").code == 0
        wait_until(lambda: int(read(sent)) >= DATA_PACKETS)
        assert int(read("counters/port_xmit_data")) > 200_000 // 4
        assert int(read("counters/port_rcv_packets")) > 0
        once = int(read(sent))
        wait_until(lambda: "over" in me.run_emu("status").out)
        assert me.run_emu("traffic", "start").code == 0
        wait_until(lambda: int(read(sent)) >= once + DATA_PACKETS)

        assert read("state") == "4: ACTIVE"
        cut = "{name: cut, link-down: {cable: 'left:h1'}}"
        assert me.run_emu("fault", "set", cut).code == 0
        wait_until(lambda: read("state") == "1: DOWN")
        assert read("phys_state") == ("2: Polling" if spec is INFINIBAND else "3: Disabled")
        assert read("counters/link_downed") == "1"
        assert me.run_emu("fault", "clear", "cut").code == 0
        wait_until(lambda: read("state") == "4: ACTIVE")
        assert wait(reader).code == 0


def threads(lab: Inside) -> int:
    """Of the lab's first process, which has the most of all that have its command."""
    own = [pid for pid, command in lab.commands.items() if "emu.lab.init" in command]
    return max(len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in own)


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)
