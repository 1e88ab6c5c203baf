"""Labs of an ordinary user on Debian's kernel: marks by RED, and Mininet's links beside a lab."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from tests.vm.machine import ROOT, Ended, Machine

pytestmark = pytest.mark.timeout(2400)

EMU = f"{sys.executable} -m emu.cli.main"
CURVE, PAIR = (ROOT / "tests/vm" / f"{name}.emu.yml" for name in ("marking-curve", "pair"))
MODULES = "for name in openvswitch sch_red sch_tbf sch_netem sch_htb; do /run/modprobe $name; done"
NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/var/tmp/nobody"
MININET = "mn --topo single,2 --switch ovsk,failMode=standalone --controller none"
SWITCHES = """
export OVS_RUNDIR=/run/openvswitch OVS_DBDIR=/run/openvswitch OVS_SYSCONFDIR=/run
/usr/share/openvswitch/scripts/ovs-ctl --system-id=random start
"""


@pytest.fixture(scope="module")
def nobody(machine: Machine) -> str:
    """The beginning of a command line of an ordinary user with a home folder."""
    home = "mkdir /var/tmp/nobody; chown 65534 /var/tmp/nobody"
    ended = machine.run(f"set -e; {MODULES}; {home}")
    assert ended.code == 0, ended.err
    return f"cd /var/tmp/nobody; {NOBODY} PYTHONPATH={ROOT}"


@pytest.fixture(scope="module")
def marking(machine: Machine, nobody: str) -> dict[str, Any]:
    """The summary of a run whose queues are in the kernel's RED."""
    ended = machine.run(f"{nobody} {EMU} run {CURVE} --json --out /var/tmp/nobody/out")
    assert ended.code in (0, 5), ended.err
    summary: dict[str, Any] = json.loads(ended.out)
    return summary


def test_an_ordinary_user_runs_a_lab(marking: dict[str, Any]) -> None:
    """Open vSwitch's kernel datapath forwards every packet, and RED drops none."""
    assert marking["plane"] == "ovs"
    assert [flow["completed"] for flow in marking["flows"]] == [True, True]
    assert marking["totals"]["retransmitted_packets"] == 0


def test_the_kernels_red_marks_along_the_curve(marking: dict[str, Any]) -> None:
    """7/8 of 200 packets stay in the queue.

    RED marks none up to kmin, half at kmax, and all beyond. RED spaces its marks: for probability q
    it marks 2q / (1 + q), which is 27.4 % on the line.
    """
    kmin, kmax, end = 20_000 / 1082, 120_000 / 1082, 200 * 7 / 8
    expected = ((kmax - kmin) * 0.274 + end - kmax) * 8 / 7
    marked = marking["ports"]["leaf1:h1"]["tx_prio3_ecn_marked"]
    assert marked == pytest.approx(expected, rel=0.1)


def test_every_mark_arrives(marking: dict[str, Any]) -> None:
    marked = marking["ports"]["leaf1:h1"]["tx_prio3_ecn_marked"]
    assert marking["hosts"]["h1"]["np_ecn_marked_roce_packets"] == marked


@pytest.fixture(scope="module")
def side_by_side(machine: Machine, nobody: str) -> Ended:
    """The output of a lab beside Mininet, whose links have a rate and a delay."""
    on_h1 = "ping -c 3 h2; tc qdisc add dev h1-eth0 root netem delay 300ms; ping -c 3 h2"
    return machine.run(
        f"set -e; {SWITCHES}\n"
        f"({nobody} {EMU} up {PAIR})\n"
        f"printf 'h1 ping -c 3 h2\\n' | {MININET} --link tc,bw=10,delay=200ms 2>&1\n"
        f"{nobody} {EMU} exec h1 -- sh -c '{on_h1}'\n"
        f"{nobody} {EMU} down"
    )


def test_mininets_links_do_not_affect_a_lab(side_by_side: Ended) -> None:
    """TCLink's netem delays Mininet's packets twice by 200 ms.

    The lab's pings pass with and without netem.
    """
    assert side_by_side.code == 0, side_by_side
    mininet, ours, delayed = map(float, re.findall(r"rtt min/[^=]*= ([\d.]+)/", side_by_side.out))
    assert mininet >= 400
    assert ours < 300 <= delayed
    assert side_by_side.out.count(" 0% packet loss") == 3
