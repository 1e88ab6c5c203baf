"""Shows a host's NIC in /sys to the calling process and its children, and to nobody else.

The kernel's sysfs takes no new folders. So the process gets a mount namespace of its own, in which
a tmpfs covers /sys/class. The kernel's classes are there again, as bind mounts, so that the links
in them lead where they did; classes of RDMA devices are the host's, also where the machine has such
devices. The mounts end with the last process that sees them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from emu.lab.libc import LIBC, checked
from emu.lab.mounts import MS_BIND, MS_RDONLY, MS_REMOUNT, mount, unshare_mounts

_MNT_DETACH = 2
_CLASSES = Path("/sys/class")
_OF_RDMA = "infiniband"
"""The names of RDMA's classes begin so."""


def show_or_explain(host: str, tree: Path) -> None:
    """As `show`. If that fails, stderr says what failed and what it means."""
    try:
        show(tree)
    except OSError as error:
        print(
            f"/sys does not show the RDMA NIC of {host}: its mounts failed: {error}; programs that "
            "look there for RDMA devices find those of this machine, or none",
            file=sys.stderr,
        )


def show(tree: Path) -> None:
    """Mounts the tree of a host, which `SysfsTree` has written.

    The calling process must have one thread, and be in the host's namespaces. Raises OSError; /sys
    is as it was then.
    """
    unshare_mounts()
    kernels = os.open(_CLASSES, os.O_PATH)
    mount("tmpfs", str(_CLASSES), kind="tmpfs", options="mode=755")
    try:
        _fill(Path(f"/proc/self/fd/{kernels}"), tree / "class")
    except OSError:
        checked(LIBC.umount2(os.fsencode(_CLASSES), _MNT_DETACH))
        raise
    finally:
        os.close(kernels)


def _fill(kernels: Path, own: Path) -> None:
    """Fills /sys/class with the kernel's classes and a host's own."""
    for found in kernels.iterdir():
        if not found.name.startswith(_OF_RDMA) and not (own / found.name).exists():
            _show(found, _CLASSES / found.name)
    for found in own.iterdir():
        place = _CLASSES / found.name
        if found.name.startswith(_OF_RDMA):
            _show(found, place, read_only=True)
        else:
            _merge(kernels / found.name, found, place)


def _merge(kernels: Path, own: Path, place: Path) -> None:
    """Makes a class that has the kernel's devices, which are links, and a host's own."""
    place.mkdir()
    for device in own.iterdir():
        _show(device, place / device.name, read_only=True)
    for device in kernels.iterdir() if kernels.exists() else ():
        if device.is_symlink() and not (place / device.name).exists():
            (place / device.name).symlink_to(device.readlink())


def _show(folder: Path, place: Path, *, read_only: bool = False) -> None:
    """Shows a folder at a new place."""
    place.mkdir()
    mount(str(folder), str(place), flags=MS_BIND)
    if read_only:
        mount(None, str(place), flags=MS_REMOUNT | MS_BIND | MS_RDONLY)
