"""`python -m tests.support.netlink_inside`: a small network built by steps, as `ip -json` shows it.

Runs in the namespaces of `unshare_command`. Prints JSON: for each namespace its links, addresses,
neighbours and routes; the values that `net_reading` reads of h1's interface; the notes about a link
that went down and up again; and the errors of steps that the kernel refuses.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from ipaddress import IPv4Address

from emu.errors import EmuError
from emu.lab.command import run
from emu.lab.link_watch import LinkWatch
from emu.lab.net_reading import addresses, interfaces, neighbour_mac
from emu.lab.net_steps import AddAddress, AddDefaultRoute, AddNeighbour, AddVeth, NetStep, SetUp
from emu.lab.netlink import carry_out
from emu.lab.netns import entered
from emu.lab.netns_holder import keep_host
from tests.support.waiting import eventually

STEPS: tuple[NetStep, ...] = (
    AddVeth("h1", "h1-eth0", "lab", mtu=4200, mac="02:00:0a:00:00:01"),
    SetUp("h1", "h1-eth0"),
    SetUp("lab", "h1-eth0"),
    AddAddress("h1", "h1-eth0", "10.0.0.1", 32),
    AddNeighbour("h1", "h1-eth0", "169.254.0.1", "02:01:00:00:00:01"),
    AddDefaultRoute("h1", "h1-eth0", "169.254.0.1", quick_ack=True),
)
REFUSED: tuple[NetStep, ...] = (
    AddVeth("h1", "h1-eth0", "lab", mtu=4200),
    SetUp("h1", "h2-eth0"),
    AddAddress("h1", "h2-eth0", "10.0.0.2", 32),
)


def main() -> None:
    pids = {"lab": os.getpid(), "h1": keep_host()}
    carry_out(STEPS, pids)
    shown = {}
    with entered(pids["h1"]):
        found = interfaces()["h1-eth0"]
        read = {
            **asdict(found),
            "addresses": [str(one) for one in addresses(found)],
            "neighbour": neighbour_mac(found, IPv4Address("169.254.0.1")),
        }
    for namespace, pid in pids.items():
        with entered(pid):
            shown[namespace] = {
                kind: json.loads(run(["ip", "-json", kind]))
                for kind in ("address", "neigh", "route")
            }
    notes = _link_notes(pids)
    errors = [_error(step, pids) for step in REFUSED]
    print(json.dumps({"shown": shown, "read": read, "notes": notes, "errors": errors}))


def _link_notes(pids: dict[str, int]) -> list[str]:
    """The notes of the lab's end of a link while its other end goes down and up again."""
    watch = LinkWatch(pids["lab"])
    with entered(pids["h1"]):
        run(["ip", "link", "set", "h1-eth0", "down"])
    eventually(lambda: bool(watch.notes))
    down = watch.notes
    carry_out([SetUp("h1", "h1-eth0")], pids)
    eventually(lambda: watch.notes != down)
    return down + watch.notes


def _error(step: NetStep, pids: dict[str, int]) -> str:
    """The error of a step between two steps that the kernel accepts."""
    veth = AddVeth("lab", f"spare{REFUSED.index(step)}", "h1", mtu=1500)
    try:
        carry_out([SetUp("h1", "lo"), step, SetUp("h1", "lo"), veth], pids)
    except EmuError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main()
