"""Verbs programs on the exact clock: the times are those of the virtual clock."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emu.clocks import ClockName
from emu.daemon.client import LabClient
from emu.daemon.messages import JoinLab, StartTraffic
from emu.errors import FabricError, UsageError
from emu.lab.ipc.codec import Query
from emu.lab.ipc.lab_time import ContinueTime, PauseTime, StepTime
from emu.lab.ipc.queries import GetPorts, SetFault
from emu.rdma import AccessFlag, Lab, QPType, SendWR, WROpcode
from tests.support.background_lab import at_home
from tests.support.traces import Inside, Outside
from tests.support.user import ROOT, User, wait

EXAMPLE = str(ROOT / "examples" / "rdma_ping.py")
SPEC = """
name: verbs
seed: 5
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 3}
switches: {pfc: {}, ecn: {}}
hosts: {nic: {timeout: 6}}
traffic: [{name: other, pattern: pair, from: h1, to: h6, op: write, size: 1MB}]
time_limit: 2ms
"""
"""The program takes longer than the time limit of the spec's traffic, which is not started."""
LOSSY = "faults=[{at: 0us, loss: {cable: 'leaf1:h1', probability: 3%}}]"


@pytest.fixture
def spec(tmp_path: Path, lab_machine: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = tmp_path / "verbs.emu.yml"
    path.write_text(SPEC)
    return path


async def incast(lab: Lab) -> list[tuple[int, float, int]]:
    """Three hosts write to h1 at the same time, and think between their messages, each in a task of
    its own. Returns the host, the time of the completion and the time after the pause of each."""
    h1, seen = lab.host("h1").rdma, []
    theirs = np.zeros(4096, np.uint64)
    remote = h1.alloc_pd().reg_mr(theirs, AccessFlag.LOCAL_WRITE | AccessFlag.REMOTE_WRITE)

    async def write(number: int) -> None:
        nic = lab.host(f"h{number}").rdma
        domain, cq = nic.alloc_pd(), nic.create_cq(16)
        own = domain.reg_mr(np.full(4096, number, np.uint64), AccessFlag.LOCAL_WRITE)
        qp, far = domain.create_qp(QPType.RC, cq), remote.pd.create_qp(QPType.RC, h1.create_cq(1))
        qp.connect(far.end)
        far.connect(qp.end)
        request = SendWR(WROpcode.RDMA_WRITE, own.sge(), remote_addr=remote.addr, rkey=remote.rkey)
        for turn in range(8):
            qp.post_send(request)
            at_ns = (await cq.wait()).succeeded().at_ns
            await lab.sleep(1000 * number + 777 * turn)
            seen.append((number, at_ns, lab.now_ns))

    await asyncio.gather(*map(write, (3, 4, 6)))
    await lab.sleep(2_000_000)
    await asyncio.gather(write(3))
    return seen


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize("changes", [(), (LOSSY,)], ids=["", "lossy"])
def test_tasks_see_the_times_of_the_virtual_clock(
    spec: Path, fabric: str, changes: tuple[str, ...]
) -> None:
    """Also those of packets that are lost, and sent again."""
    clocks: tuple[ClockName, ...] = ("virtual", "exact")
    seen = []
    for clock in clocks:
        with Lab(spec, f"fabric={fabric}", *changes, clock=clock) as lab:
            times = lab.run(incast(lab))
            counters = {name: lab.host(name).rdma.counters for name in ("h1", "h3", "h4", "h6")}
            seen.append((times, lab.now_ns, counters))
    assert seen[0] == seen[1]
    assert seen[0][1] > 2_000_000


def test_the_example_leaves_nothing(user: User) -> None:
    """The users are root and an ordinary user."""
    me = at_home(user)
    path = me.home.parent / "verbs.emu.yml"
    path.write_text(SPEC)
    before = Outside.now(me)
    on_clock = {
        clock: wait(me.start(sys.executable, EXAMPLE, str(path), clock))
        for clock in ("virtual", "exact")
    }
    assert on_clock["exact"].code == 0, on_clock["exact"].err
    assert on_clock["exact"].out == on_clock["virtual"].out
    assert Outside.now(me) == before


def test_other_nics_are_refused(spec: Path) -> None:
    """The program has the NICs from the beginning to the end."""
    with Lab(spec, clock="exact") as lab, LabClient(lab.name) as client:
        with pytest.raises(UsageError, match="a program is the NICs of the lab verbs-"):
            client.ask(JoinLab())
        with pytest.raises(UsageError, match="a program is the NICs of the lab verbs-"):
            client.ask(StartTraffic())
        lab.run(lab.sleep(1000))
        assert lab.now_ns == 1000


def test_only_the_program_stops_time_and_has_faults(spec: Path) -> None:
    """Others would wait for the program. They see what is there."""
    storm = {"name": "storm", "pause-storm": {"host": "h1"}}
    with Lab(spec, clock="exact") as lab, LabClient(lab.name) as client:
        queries: list[Query[Any]] = [PauseTime(), ContinueTime(), StepTime(1), SetFault("x", storm)]
        for query in queries:
            with pytest.raises(UsageError, match="write pauses into the program, and faults into"):
                client.ask(query)
        lab.run(incast(lab))
        snapshot, _ = client.ask(GetPorts())
        assert snapshot.ports["leaf1:h1"].counters["tx_prio3_packets"] > 100


def test_a_lab_that_dies_ends_the_wait(spec: Path) -> None:
    """The task that waits gets the reason, at once."""

    async def kill_and_wait(lab: Lab) -> None:
        victim = Inside(os.getpid()).process("ovs-vswitchd", "--detach")
        os.kill(victim, signal.SIGKILL)
        while True:
            await lab.sleep(1000)

    def use() -> None:
        with Lab(spec, clock="exact") as lab:
            lab.run(kill_and_wait(lab))

    with pytest.raises(FabricError, match=r"ovs-vswitchd died \(signal 9\)"):
        use()


def test_kernel_queues_are_refused(spec: Path) -> None:
    with (
        pytest.raises(UsageError, match="red has its queues in the kernel"),
        Lab(spec, "switches.ecn.marker=red", clock="exact"),
    ):
        pass
