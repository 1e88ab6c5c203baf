"""Starts programs of other projects and checks their results.

If a program is not installed, the HostError names its Debian package. If it
fails, the FabricError contains its output.

Programs are searched in PATH and then in the sbin folders, where Debian installs Open
vSwitch's daemons; an ordinary user's PATH lacks these folders.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from emu.errors import FabricError, HostError

PACKAGES = {
    "bash": "bash",
    "clang": "clang",
    "ibsim": "ibsim-utils",
    "ifconfig": "net-tools",
    "ip": "iproute2",
    "iperf3": "iperf3",
    "mnexec": "mininet",
    "mount": "mount",
    "mpirun": "openmpi-bin",
    "nft": "nftables",
    "opensm": "opensm",
    "ovs-appctl": "openvswitch-switch",
    "ovs-ofctl": "openvswitch-switch",
    "ovs-vsctl": "openvswitch-switch",
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovsdb-tool": "openvswitch-switch",
    "ping": "iputils-ping",
    "prlimit": "util-linux",
    "setpriv": "util-linux",
    "tc": "iproute2",
    "tshark": "tshark",
    "unshare": "util-linux",
}
"""Program -> its Debian package."""

_SBIN_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def environment() -> dict[str, str]:
    """This process's environment, with the sbin folders in PATH, one OpenBLAS thread and Python's
    own distutils.

    numpy's OpenBLAS takes 32 MB and a stack for each further thread; processes of a lab
    never use them. Mininet imports distutils to compare two versions; setuptools would put its own
    in that place, whose import takes a tenth of a second.
    """
    path = os.environ.get("PATH", os.defpath)
    return os.environ | {
        "PATH": os.pathsep.join((path, *_SBIN_FOLDERS)),
        "OPENBLAS_NUM_THREADS": "1",
        "SETUPTOOLS_USE_DISTUTILS": "stdlib",
    }


def is_installed(program: str) -> bool:
    """Whether `run` would find the program."""
    return shutil.which(program, path=environment()["PATH"]) is not None


def missing_program(program: str) -> HostError:
    """The error for a program that is not installed."""
    return HostError(
        f"the program {program} is missing", remedy=f"sudo apt-get install {PACKAGES[program]}"
    )


def run(command: Sequence[str], *, stdin: str = "") -> str:
    """Runs a program to its end and returns what it printed.

    Raises HostError when it is not installed and FabricError when it fails.
    """
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True)
    except FileNotFoundError:
        raise missing_program(command[0]) from None
    if done.returncode != 0:
        output = (done.stderr or done.stdout).strip()
        raise FabricError(f"{_short(command)} failed ({done.returncode}): {output}")
    return done.stdout


def _short(command: Sequence[str]) -> str:
    """A command, shortened for an error line."""
    line = " ".join(command)
    return line if len(line) <= 100 else f"{line[:100]}..."
