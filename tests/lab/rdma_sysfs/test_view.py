"""What a program sees in /sys: its host's NIC beside the kernel's classes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from emu.lab.command import environment
from emu.lab.namespace import unshare_command
from tests.support.needs import need
from tests.support.user import ROOT

SHOWN = """
import os
from pathlib import Path
from emu.lab.rdma_sysfs.view import show_or_explain
before = os.listdir("/sys/class")
show_or_explain("h1", Path("/no/tree"))
assert sorted(os.listdir("/sys/class")) == sorted(before)
"""
MEANS = "programs that look there for RDMA devices find those of this machine, or none\n"


def explain(*prefix: str) -> str:
    """The stderr of a program that cannot show h1's NIC."""
    command = [*prefix, sys.executable, "-c", SHOWN]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_program_sees_no_rdma_device_of_the_machine() -> None:
    """Links in the kernel's classes lead where they did. Programs cannot change what others see,
    and those outside see the machine's devices."""
    need("namespaces")
    scratch = unshare_command(root=os.geteuid() == 0)
    done = subprocess.run(
        [*scratch, sys.executable, "-m", "tests.support.sysfs_inside"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    inside = told["inside"]
    classes = ("infiniband", "infiniband_mad", "infiniband_verbs")
    assert inside["rdma"] == [f"/sys/class/{name}" for name in classes]
    assert inside["devices"] == ["emu_0"]
    assert inside["misc"] == ["rdma_cm", "tun"]
    assert inside["net"] == ["lo"]
    assert inside["linked"] == inside["misc linked"] == ["65536"]
    assert "Read-only" in inside["written"]
    assert told["outside"] == ["/sys/class/infiniband", "/sys/class/infiniband_cm"]


def test_a_program_without_rights_is_told_what_failed() -> None:
    prefix = ["setpriv", "--bounding-set=-sys_admin"] if os.geteuid() == 0 else []
    told = explain(*prefix)
    begin = "/sys does not show the RDMA NIC of h1: its mounts failed: "
    assert told.startswith(f"{begin}[Errno 1] Operation not permitted"), told
    assert told.endswith(MEANS)
    assert told.count("\n") == 1


def test_a_host_without_files_leaves_sys_as_it_was() -> None:
    need("namespaces")
    told = explain(*unshare_command(root=os.geteuid() == 0))
    assert "No such file or directory: '/no/tree/class'" in told
    assert told.endswith(MEANS)
