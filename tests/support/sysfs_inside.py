"""`python -m tests.support.sysfs_inside`: h1's RDMA NIC in /sys, on a machine that has one, too.

Runs in the namespaces of `unshare_command`. Prints JSON: for each name the outcome of a shell
command in a program that sees the NIC, and the RDMA devices that another program sees.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from emu.lab.command import run
from emu.lab.init import make_private
from emu.lab.rdma_sysfs.nic import PortState, ethernet_nic
from emu.lab.rdma_sysfs.place import tree_of
from emu.lab.rdma_sysfs.tree import SysfsTree
from emu.lab.rdma_sysfs.view import show
from tests.support.lab_fabrics import clos

CLASSES = Path("/sys/class")
COMMANDS = {
    "rdma": "echo /sys/class/infiniband*",
    "devices": "ls /sys/class/infiniband",
    "misc": "ls /sys/class/misc",
    "net": "ls /sys/class/net",
    "linked": "cat /sys/class/net/lo/mtu",
    "misc linked": "cat /sys/class/misc/tun/mtu",
    "written": "echo 1 2>&1 > /sys/class/infiniband/emu_0/node_desc",
}


def main() -> None:
    make_private()
    SysfsTree(tree_of("h1"), ethernet_nic(clos(1), "h1", "0"), PortState(up=True))
    _make_classes()
    see, print_seen = os.pipe()
    if os.fork() == 0:
        show(tree_of("h1"))
        os.write(
            print_seen, json.dumps({name: _output(c) for name, c in COMMANDS.items()}).encode()
        )
        os._exit(0)
    os.close(print_seen)
    with os.fdopen(see) as seen:
        inside = json.load(seen)
    print(json.dumps({"inside": inside, "outside": _output(COMMANDS["rdma"])}))


def _make_classes() -> None:
    """Replaces the kernel's classes by those of a machine with RDMA devices."""
    run(["mount", "-t", "tmpfs", "tmpfs", str(CLASSES)])
    for folder in ("infiniband/mlx5_0", "infiniband_cm/mlx5_0", "net", "misc/rdma_cm"):
        (CLASSES / folder).mkdir(parents=True)
    for link in ("net/lo", "misc/tun"):
        (CLASSES / link).symlink_to("../../devices/virtual/net/lo")


def _output(command: str) -> list[str]:
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).split()


if __name__ == "__main__":
    main()
