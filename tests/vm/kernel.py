"""Debian's kernel with its modules, unpacked below a folder and not installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

_NEWEST = "linux-image-amd64"
"""A metapackage that depends on the newest kernel's package."""


def unpacked(folder: Path) -> Path:
    """The kernel's image, downloaded on first use. Its modules lie in `folder`/lib/modules."""
    images = sorted(folder.glob("boot/vmlinuz-*"))
    if not images:
        _unpack(_download(folder), folder)
        images = sorted(folder.glob("boot/vmlinuz-*"))
    return images[-1]


def _download(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    depends = _told("apt-cache", "depends", "--no-suggests", _NEWEST).splitlines()
    (package,) = (line.split()[1] for line in depends if line.strip().startswith("Depends:"))
    subprocess.run(["apt-get", "-qq", "download", package], cwd=folder, check=True)
    (deb,) = folder.glob(f"{package}_*.deb")
    return deb


def _unpack(deb: Path, folder: Path) -> None:
    """Unpack the image last, so that its presence means that unpacking has finished."""
    for part in ("./lib", "./boot"):
        _extract(deb, folder, part)
        if part == "./lib":
            (version,) = (folder / "lib/modules").iterdir()
            subprocess.run(["/sbin/depmod", "--basedir", folder, version.name], check=True)
    deb.unlink()


def _extract(deb: Path, folder: Path, part: str) -> None:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as files:
        subprocess.run(["tar", "-x", "-C", folder, part], stdin=files.stdout, check=True)


def _told(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
