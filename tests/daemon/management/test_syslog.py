"""Hosts and switches report events to the collector by syslog."""

from __future__ import annotations

import sys

import pytest

from tests.support.background_lab import at_home, lab_up
from tests.support.exact_lab import EXACT, emu
from tests.support.managed_lab import SPEC, reachability, reached_cells, wrong_cells
from tests.support.needs import need
from tests.support.user import User, wait

pytestmark = pytest.mark.timeout(300)
COLLECTOR = """
import socket, sys
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.bind(("", 514))
print("listening", flush=True)
for _ in range(int(sys.argv[1])):
    data, (address, _) = line.recvfrom(4096)
    print(address, data.decode(), flush=True)
"""
REPORTS = SPEC.replace("management: on", "management: {syslog: on, exporter: off, allow: []}")


@pytest.fixture
def me(myself: User) -> User:
    need("nftables")
    return at_home(myself)


def test_both_ends_report_a_lost_link(me: User) -> None:
    """From their own addresses; what syslog needs is allowed without an entry in `allow`."""
    with lab_up(me, REPORTS, *EXACT):
        listening = me.emu("exec", "mgmt", "--", sys.executable, "-c", COLLECTOR, "4")
        assert listening.stdout is not None
        assert listening.stdout.readline() == b"listening\n"
        emu(me, "fault", "set", "link-down: {cable: leaf1:spine1}")
        lost = [listening.stdout.readline().decode() for _ in range(2)]
        emu(me, "fault", "clear", "link-down-1")
        ended = wait(listening)
    back = ended.out.splitlines()
    for lines, severity, event in ((lost, 131, "link-down"), (back, 133, "link-up")):
        senders = {line.split()[0]: line.split()[2:4] for line in lines}
        assert senders.keys() == {"172.16.128.1", "172.16.128.2"}
        assert {words[1] for words in senders.values()} == {"spine1", "leaf1"}
        assert all(f"<{severity}>1 " in line and event in line for line in lines)
        assert all('where="leaf1:spine1"' in line for line in lines)


def test_nobody_else_may_send_then(me: User) -> None:
    with lab_up(me, REPORTS, *EXACT):
        measured = reachability(me)
    assert wrong_cells(measured) == set()
    assert {cell[1:] for cell in reached_cells(measured)} == {("mgmt", "udp/514")}


def test_probes_do_not_disturb_a_program_that_listens(me: User) -> None:
    """What it alone could tell is not known; all else is. It reads what switches report: packets
    for which they have no route."""
    with lab_up(me, REPORTS, *EXACT):
        listening = me.emu("exec", "mgmt", "--", sys.executable, "-c", COLLECTOR, "1000")
        assert listening.stdout is not None
        assert listening.stdout.readline() == b"listening\n"
        measured = reachability(me)
        listening.terminate()
        ended = wait(listening)
    unknown = [cell for cell in measured["cells"] if cell["reached"] is None]
    assert {(cell["target"], cell["service"]) for cell in unknown} == {("mgmt", "udp/514")}
    assert measured["as_allowed"]
    assert all(line.split()[1].startswith("<132>1") for line in ended.out.splitlines())
