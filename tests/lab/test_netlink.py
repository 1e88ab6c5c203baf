"""Network steps: their effect on the kernel, the reading of its state,
and errors of refused steps."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from emu.errors import EmuError, FabricError, HostError
from emu.lab.command import environment
from emu.lab.namespace import unshare_command
from emu.lab.net_reading import Interface, drops_note
from emu.lab.net_steps import AddTun, AddVeth, AttachClsact, NetStep, SetUp
from emu.lab.netlink import failure
from emu.lab.tun import REMEDY
from emu.privilege import remedy_for_me

VETH = AddVeth("h1", "h1-eth0", "shim", mtu=4200)


def test_network_steps_take_effect_in_the_kernel() -> None:
    """iproute2 shows the result, without root. The error of a refused step names the step."""
    scratch = unshare_command(root=os.geteuid() == 0)
    done = subprocess.run(
        [*scratch, sys.executable, "-m", "tests.support.netlink_inside"],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (link,) = [link for link in told["shown"]["h1"]["address"] if link["ifname"] == "h1-eth0"]
    assert (link["address"], link["mtu"], link["operstate"]) == ("02:00:0a:00:00:01", 4200, "UP")
    assert [
        (one["local"], one["prefixlen"]) for one in link["addr_info"] if one["family"] == "inet"
    ] == [("10.0.0.1", 32)]
    (neighbour,) = told["shown"]["h1"]["neigh"]
    assert (neighbour["lladdr"], neighbour["state"]) == ("02:01:00:00:00:01", ["PERMANENT"])
    (route,) = told["shown"]["h1"]["route"]
    assert (route["dst"], route["gateway"], route["flags"]) == (
        "default",
        "169.254.0.1",
        ["onlink"],
    )
    assert route["metrics"] == [{"quickack": 1}]
    read = told["read"]
    assert (read["mac"], read["mtu"], read["up"], read["carrier"]) == (
        *(link["address"], link["mtu"]),
        *(True, True),
    )
    assert (read["index"], read["addresses"]) == (link["ifindex"], ["10.0.0.1"])
    assert read["neighbour"] == neighbour["lladdr"]
    assert [note[:37] for note in told["notes"]] == [
        "the kernel's link of h1-eth0 is down:",
        "the kernel's link of h1-eth0 was down",
    ]
    assert told["errors"] == [
        "namespace h1: the kernel did not add veth h1-eth0 mtu 4200 peer in lab: File exists; "
        "two nodes must not have the same name in the spec's topology",
        "namespace h1: the kernel did not set h2-eth0 up: No such device",
        "namespace h1: the kernel did not add address 10.0.0.2/32 to h2-eth0: "
        "no interface with this name",
    ]


@pytest.mark.parametrize(
    ("step", "number", "kind", "remedy"),
    [
        (VETH, errno.EOPNOTSUPP, HostError, "sudo modprobe veth"),
        (AttachClsact("lab", "leaf1-eth1"), errno.ENOENT, HostError, "sudo modprobe sch_ingress"),
        (AddTun("h1", "ib0"), errno.ENOENT, HostError, REMEDY),
        (AddTun("h1", "ib0"), errno.EACCES, HostError, REMEDY),
        (VETH, errno.EPERM, HostError, "run as root, or run `emu check`"),
        (VETH, errno.EEXIST, FabricError, "the same name"),
        (SetUp("h1", "h1-eth0"), errno.ENODEV, FabricError, ""),
    ],
)
def test_a_refused_step_has_its_remedy(
    step: NetStep, number: int, kind: type[EmuError], remedy: str
) -> None:
    """The error gives what, where, why and what to do."""
    error = failure(step, OSError(number, "the kernel's reason"))
    assert type(error) is kind
    said = str(error)
    assert said.startswith(f"namespace {step.namespace}: the kernel did not {step}: the kernel's")
    assert remedy_for_me(remedy) in said


def test_a_note_names_interfaces_that_dropped_packets() -> None:
    """Drops in both directions count. Without drops there is no note."""
    quiet = Interface("h1-eth0", 2, "", 4200, up=True, carrier=True, rx_dropped=0, tx_dropped=0)
    lossy = replace(quiet, name="h2-eth0", rx_dropped=1200, tx_dropped=34)
    assert drops_note([quiet]) == ""
    assert drops_note([quiet, lossy]) == ("the kernel dropped packets in the lab: 1,234 at h2-eth0")
