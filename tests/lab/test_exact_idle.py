"""A program posts the work of a lab's NICs on the exact clock. While it waits for something outside
the emulation, time stands, frames of other programs pass, and nobody uses the processor."""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path

import pytest

from emu.daemon.client import LabClient
from emu.daemon.messages import GetStatus
from emu.errors import RemoteProtocolError, UsageError
from emu.lab.ipc.lab_time import PauseTime
from emu.lab.ipc.queries import GetPorts
from emu.spec.model import spec_from_text
from emu.spec.scenario import Spec
from tests.support.program_nics import (
    ProgramNics,
    processor_ns,
    program_nics,
    shim_of_this_process,
)
from tests.support.waiting import eventually

SPEC = """
name: idle
seed: 5
fabric: FABRIC
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}
traffic: [{name: other, pattern: pair, from: h1, to: h4, op: write, size: 1MB}]
"""
ROCE = SPEC.replace("FABRIC", "roce")
PERIODIC = (
    ROCE
    + "switches: {pfc: {}, ecn: {}, watchdog: {detection: 20us, restoration: 20us, poll: 10us}}\n"
    + "sample_interval: 1us\n"
)
IB = SPEC.replace("FABRIC", "ib")
FABRICS = pytest.mark.parametrize("text", [ROCE, PERIODIC, IB], ids=["roce", "periodic", "ib"])
SIZE = 20_000
MS = 10**9
"""Picoseconds."""
TIMEOUT_6_PS = 4096 * 1000 << 6


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, lab_machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def parsed(text: str) -> Spec:
    return spec_from_text(text.encode(), source="idle.emu.yml")


def time_of(nics: ProgramNics) -> tuple[str, int]:
    with LabClient(nics.lab) as client:
        status, _ = client.ask(GetStatus())
    return status.time.state, status.time.now_ps


def wait_until_it_stands(nics: ProgramNics, least_ps: int = 0) -> None:
    """The state that others see is some milliseconds old."""

    def stands() -> bool:
        state, now_ps = time_of(nics)
        return state == "stands" and now_ps >= least_ps

    eventually(stands)


@FABRICS
def test_an_idle_lab_uses_no_processor(text: str) -> None:
    """Neither before the first message nor after one, and its time stands."""
    with program_nics(parsed(text)) as nics:
        writer, least_ps = nics.writer("h1", "h4", SIZE), 0
        for _ in range(2):
            nics.run()
            wait_until_it_stands(nics, least_ps)
            shim, before = shim_of_this_process(), time_of(nics)
            spent_ns = processor_ns(shim), processor_ns(os.getpid())
            assert not select.select([nics.driver.nudge], [], [], 0.5)[0]
            later_ns = processor_ns(shim), processor_ns(os.getpid())
            assert later_ns[0] - spent_ns[0] < 5_000_000
            assert later_ns[1] - spent_ns[1] < 5_000_000
            assert time_of(nics) == before
            writer.post()
            least_ps = before[1] + 1


@FABRICS
def test_wall_time_changes_no_emulated_time(text: str) -> None:
    """Whatever the program does between its messages, and how often it asks for time to go on."""
    seen = []
    for pauses in ([0.0] * 10, [0.001 * 3**turn for turn in range(6)] + [0.0, 0.01, 0.02, 0.0]):
        with program_nics(parsed(text)) as nics:
            writer = nics.writer("h1", "h4", SIZE)
            times: list[float] = []
            for pause in pauses:
                for _ in range(int(pause * 1000) % 4 + 1):
                    assert nics.run() == []
                time.sleep(pause)
                times.append(nics.now_ps)
                writer.post()
                (event,) = nics.run()
                times += [event, writer.completion_ns()]
        seen.append(times)
    assert seen[0] == seen[1]
    assert len(set(seen[0])) > 20


def messages_between_rests(spec: Spec, longest_ps: int) -> list[object]:
    """The times of messages, between rests of which at most so much passes at a time; and how many
    credit updates h1 has sent and received."""
    seen: list[object] = []
    with program_nics(spec) as nics:
        writer = nics.writer("h1", "h4", 8)
        for turn in range(40):
            for _ in range(turn % 5 + 1):
                writer.post()
            for _ in range(60 + 3 * turn):  # the rest begins among the last credit updates
                nics.sleep(30_000)
            pass_in_pieces(nics, 50_000_000 + 3_777_777 * turn, longest_ps)
            seen += [nics.now_ps, [writer.completion_ns() for _ in range(turn % 5 + 1)]]
        fabric = nics.host["h1"].clock.fabric
        counters = fabric.counters(fabric.topology.ports["h1"][0])
        return [*seen, counters["tx_flow_control"], counters["rx_flow_control"]]


def pass_in_pieces(nics: ProgramNics, total_ps: int, longest_ps: int) -> None:
    for begin in range(0, total_ps, longest_ps):
        nics.sleep(min(longest_ps, total_ps - begin))


def test_a_rest_changes_no_credit_update() -> None:
    """Time goes at once to the end of a rest that is longer than the period of these updates, which
    is 10.5 us here."""
    links = "links: {host: {rate: 100Gbit, length: 40m}, fabric: {rate: 100Gbit, length: 20m}}"
    text = IB.replace("hosts_per_leaf: 2", f"hosts_per_leaf: 2, {links}")
    spec = parsed(text + "switches: {credits: {vls: 4}}\n")
    at_once, in_pieces = (messages_between_rests(spec, most) for most in (MS, 5_000_000))
    assert at_once == in_pieces


@FABRICS
def test_queries_are_answered_while_time_stands(text: str) -> None:
    """Also while the program thinks after a completion. Time cannot be paused."""
    with program_nics(parsed(text)) as nics, LabClient(nics.lab) as client:
        writer = nics.writer("h1", "h4", SIZE)
        writer.post()
        nics.run()
        wait_until_it_stands(nics, 1)
        snapshot, _ = client.ask(GetPorts())
        assert sum(snapshot.ports["leaf1:h1"].counters.values()) > 20
        with pytest.raises(UsageError, match="a program is the NICs of the lab"):
            client.ask(PauseTime())


@pytest.mark.parametrize("text", [ROCE, IB], ids=["roce", "ib"])
def test_a_lab_is_busy_until_retransmission_ends(text: str) -> None:
    """No frame is on the way most of that time, and the program need not say that it waits."""
    lost = "faults: [{at: 0us, loss: {cable: 'leaf1:h1', probability: 100%}}]\n"
    with program_nics(parsed(text + "hosts: {nic: {timeout: 6, retry_count: 2}}\n" + lost)) as nics:
        writer = nics.writer("h1", "h4", SIZE)
        writer.post()
        (at_ps,) = nics.run()
        with pytest.raises(RemoteProtocolError, match="RETRY_EXC_ERR"):
            writer.completion_ns()
        assert at_ps > 3 * TIMEOUT_6_PS


@pytest.mark.parametrize("text", [ROCE, IB], ids=["roce", "ib"])
def test_what_is_sent_without_a_link_ends_with_its_retries(text: str) -> None:
    """The NIC discards it, so nothing waits for a link that never comes back."""
    dead = "faults: [{at: 0us, link-down: {cable: 'leaf1:h1'}}]\n"
    with program_nics(parsed(text + "hosts: {nic: {timeout: 6, retry_count: 2}}\n" + dead)) as nics:
        writer = nics.writer("h1", "h4", SIZE)
        writer.post()
        (at_ps,) = nics.run()
        with pytest.raises(RemoteProtocolError, match="RETRY_EXC_ERR"):
            writer.completion_ns()
        assert 3 * TIMEOUT_6_PS < at_ps < 4 * TIMEOUT_6_PS
        stands_at_ps = nics.now_ps
        assert nics.run() == []
        assert nics.now_ps == stands_at_ps


@pytest.mark.parametrize("text", [ROCE, PERIODIC], ids=["roce", "periodic"])
def test_a_ping_passes_idle_nics(text: str) -> None:
    with program_nics(parsed(text)) as nics:
        nics.run()
        ping = nics.start("h1", "ping", "-c", "5", "-i", "0.01", "-W", "5", "h4-eth0")
        said = nics.serve(ping)
        assert "5 received" in said
        wait_until_it_stands(nics, 1)


RECEIVE = """
import socket
with socket.create_server(("", 5000)) as server:
    print("listening", flush=True)
    line, _ = server.accept()
    with line:
        count = 0
        while piece := line.recv(1 << 16):
            count += len(piece)
        line.sendall(str(count).encode())
"""
SEND = """
import socket
with socket.create_connection(("h4-eth0", 5000)) as line:
    line.sendall(bytes(1_000_000))
    line.shutdown(socket.SHUT_WR)
    print(line.recv(100).decode())
"""


@pytest.mark.parametrize("text", [ROCE, PERIODIC], ids=["roce", "periodic"])
def test_tcp_passes_idle_nics(text: str) -> None:
    """A megabyte from one host to another, and an answer."""
    with program_nics(parsed(text)) as nics:
        nics.run()
        server = nics.start("h4", sys.executable, "-c", RECEIVE)
        assert server.stdout is not None
        assert server.stdout.readline() == "listening\n"
        assert nics.serve(nics.start("h1", sys.executable, "-c", SEND)) == "1000000\n"
        nics.serve(server)


@pytest.mark.parametrize("text", [ROCE, IB], ids=["roce", "ib"])
def test_a_rest_of_seconds_takes_few_windows(text: str) -> None:
    """Credit updates of a program that sleeps for ten seconds would be some millions."""
    with program_nics(parsed(text)) as nics:
        writer = nics.writer("h1", "h4", SIZE)
        writer.post()
        nics.run()
        first_ns, posted_ps = writer.completion_ns(), nics.now_ps
        windows = nics.driver.counts().windows
        nics.sleep(10_000 * MS)
        assert nics.now_ps == posted_ps + 10_000 * MS
        assert nics.driver.counts().windows - windows < 200
        writer.post()
        nics.run()
        taken_ns = writer.completion_ns() - nics.now_ps // 1000
        assert abs(taken_ns) < first_ns
