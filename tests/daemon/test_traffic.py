"""Failures of traffic in an interactive lab: the status reports them, and no process is left."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from emu.daemon import traffic as module
from emu.daemon.lab_clock import RealLabClock
from emu.daemon.messages import TrafficStatus
from emu.daemon.nics import Nics
from emu.daemon.traffic import Traffic
from emu.errors import FabricError
from emu.lab.ipc.channel import Channel, channel_pair
from emu.lab.ipc.messages import Done, Failure, Progress, Ready, Start
from emu.lab.ipc.queries import ShimTiming
from emu.lab.ipc.rpc import RpcClient
from emu.lab.ipc.setup import NicsReady, SetUpNics, SetUpTcp
from emu.lab.session import Session
from emu.lab.supervisor import Supervisor
from emu.measure.counters import XMIT_WAIT
from emu.measure.run_progress import RunProgress
from emu.measure.seqlock import SharedCounters
from emu.spec.load import spec_from_text
from emu.spec.scenario import Spec
from tests.support.user import SECONDS

SPEC = """
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 200KB}]
"""
TCP = SPEC.replace("op: write", "stack: tcp")
_COUNTERS = "/memfd:counters "
TIMING = ShimTiming((), (), (), (), 0, 0, 0, 0)
SILENT = (
    "the shim of the lab toy has not answered for 0.05 s: it was stopped, or the machine is "
    "overloaded; "
)


class Staff:
    """A supervisor whose processes are only the far ends of channels.

    Each reports at once that it is set up, or the failure in `says`.
    """

    def __init__(self) -> None:
        self.there: dict[int, Channel] = {}
        """Process id -> far end, without processes that were ended."""
        self.ever: list[Channel] = []
        self.says: dict[str, Failure] = {}
        self._channels: dict[int, Channel] = {}

    discard, needed = Supervisor.discard, Supervisor.needed

    def spawn(self, name: str, command: Sequence[str]) -> Channel:
        near, far = channel_pair()
        channel, pid = Channel(far), len(self.ever)
        self.ever.append(channel)
        self.there[pid], self._channels[pid] = channel, near
        channel.send(Ready(pid))
        if name in self.says:
            channel.send(self.says[name])
        elif name == "the NIC process":
            _is_set_up(channel)
        else:
            channel.send(Done())
        return near

    def end_process(self, pid: int) -> None:
        """End a process. Messages that it was sent before can still be read."""
        self.there.pop(pid)._socket.shutdown(socket.SHUT_WR)
        del self._channels[pid]


def _is_set_up(channel: Channel) -> None:
    """Send the answer of NICs that are set up. No process answers on their line."""
    hosts = SharedCounters.new(["h1"], [(XMIT_WAIT, 1)])
    flows = SharedCounters.new(["flow"], [("bytes", 1)])
    near, far = socket.socketpair()
    with closing(hosts), closing(flows), near, far:
        files = [hosts.file, flows.file, near.fileno()]
        channel.send(NicsReady(hosts.layout, flows.layout), files)


class Lab:
    """Traffic, with stubs for the processes around it."""

    def __init__(self, spec: Spec) -> None:
        near, far = channel_pair()
        self.shim, self.staff = Channel(far), Staff()
        text = spec.to_json()
        nic_setup = SetUpNics(text, 1, interactive=True, hosts={}, subnet=None, ip=False)
        parts = SimpleNamespace(
            spec=spec,
            plan=SimpleNamespace(ib0=False),
            nic_setup=lambda **_: nic_setup,
            tcp_setup=lambda: SetUpTcp(text, 1, {}),
            nics=None,
            has_ip=True,
        )
        session = cast(Session, parts)
        staff = cast(Supervisor, self.staff)
        line = RpcClient(near, "the shim", "toy", seconds=0.05)
        clock = RealLabClock(spec, line, 1, 0)
        self.traffic = Traffic(session, staff, clock, Nics(session, staff, clock))

    @property
    def state(self) -> str:
        return self.traffic.status.state

    def start(self) -> Channel:
        """Start traffic with a shim that answers once. Returns the far end of the NICs' channel."""
        self.shim.send(TIMING)
        begun = len(self.staff.ever)
        self.traffic.start()
        return self.staff.ever[begun]


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A lab of `SPEC`, or of the test's parameter."""
    text = getattr(request, "param", SPEC)
    made = Lab(spec_from_text(text.encode(), source="test"))
    yield made
    for far in made.staff.ever:
        far.close()


def _wait_for_hangup(nics: Channel) -> None:
    """Wait until the lab closes the channel at the end of the workload."""
    with suppress(EOFError):
        while True:
            nics.receive(within=SECONDS)


def _open_counter_files() -> set[int]:
    """The inodes of open counter files. Threads of an earlier test may still close theirs."""
    there = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if str(descriptor.readlink()).startswith(_COUNTERS):
                there.add(descriptor.stat().st_ino)
    return there


@pytest.mark.parametrize("lab", [SPEC, TCP], indirect=True, ids=["RDMA", "TCP"])
def test_failed_traffic_start_leaves_no_process(lab: Lab) -> None:
    """The shim does not answer. Nothing stays open, and traffic can be started again."""
    before = _open_counter_files()
    with pytest.raises(FabricError, match=f"^{SILENT}"):
        lab.traffic.start()
    assert (lab.staff.there, lab.state) == ({}, "none")
    for far in lab.staff.ever:
        _wait_for_hangup(far)
    assert _open_counter_files() <= before
    lab.shim.send(TIMING)  # the answer that came too late
    lab.start()
    assert lab.state == "running"
    lab.traffic.stop()


@pytest.mark.parametrize("lab", [TCP], indirect=True)
@pytest.mark.parametrize("name", ["the NIC process", "the TCP process"])
def test_failed_setup_leaves_no_process(lab: Lab, name: str) -> None:
    """Processes that started earlier are ended as well."""
    lab.staff.says[name] = Failure("host", "no more memory", "take less")
    with pytest.raises(Exception, match="no more memory; take less"):
        lab.traffic.start()
    assert (lab.staff.there, lab.state) == ({}, "none")


def test_traffic_does_not_begin_without_a_thread(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that follows the workload cannot be started."""

    def start(thread: threading.Thread) -> None:
        """Start traffic with a shim that answers once. Returns the far end of the NICs' channel."""
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        lab.start()
    assert (lab.staff.ever, lab.state) == ([], "none")


def test_traffic_with_a_silent_shim_has_failed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workload is over, but the shim does not report its timing."""
    monkeypatch.setattr(module, "read_observation", lambda: SimpleNamespace(faults=(), flows=()))
    nics = lab.start()
    assert lab.state == "running"
    nics.send(Done())
    _wait_for_hangup(nics)
    assert lab.state == "failed"
    assert (lab.traffic.status.error or "").startswith(SILENT)
    assert lab.staff.there == {}
    lab.shim.send(TIMING)  # the answer that came too late
    lab.start()
    status = lab.traffic.status
    assert (status.state, status.error, status.number) == ("running", None, 2)
    lab.traffic.stop()


def test_traffic_whose_nics_fail_has_failed(lab: Lab) -> None:
    """The status has the reason of the NIC process."""
    nics = lab.start()
    nics.send(Failure("fabric", "internal error: ZeroDivisionError: division by zero"))
    _wait_for_hangup(nics)
    assert (lab.state, lab.staff.there) == ("failed", {})
    assert lab.traffic.status.error == "internal error: ZeroDivisionError: division by zero"


def test_stopping_traffic_ends_silent_nics(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lab asks the NICs for the counts of faults. `traffic stop` reports the missing answer."""

    def ask(rpc: RpcClient, message: object) -> None:
        raise FabricError("the NIC process has not answered for 20 s")

    nics = lab.start()
    with monkeypatch.context() as patched:
        patched.setattr(RpcClient, "ask", ask)
        with pytest.raises(FabricError, match="the NIC process has not answered"):
            lab.traffic.stop()
    _wait_for_hangup(nics)
    assert (lab.state, lab.staff.there) == ("failed", {})
    assert lab.traffic.status.error == "the NIC process has not answered for 20 s"


def moment(bytes_done: int) -> RunProgress:
    return RunProgress(0, bytes_done, 9, 0, 1)


def test_progress_after_a_stop_is_ignored(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late messages neither count for the next workload nor change the state."""
    tell: list[Callable[[Progress], None]] = []
    following = threading.Event()

    def carry_out(nics: Channel, tcp: object, on_progress: Callable[[Progress], None]) -> Any:
        tell.append(on_progress)
        following.set()
        nics.receive()

    monkeypatch.setattr(module, "carry_out", carry_out)
    nics = lab.start()
    assert nics.expect(SetUpNics)
    assert nics.expect(Start)
    assert following.wait(SECONDS)
    tell[0](Progress("running", moment(1)))
    assert lab.traffic.status.progress == moment(1)
    lab.traffic.stop()
    tell[0](Progress("running", moment(2)))
    assert (lab.state, lab.traffic.status.progress) == ("stopped", moment(1))
    lab.start()
    tell[0](Progress("running", moment(3)))
    assert lab.traffic.status == TrafficStatus(number=2, state="running")
    lab.traffic.stop()
