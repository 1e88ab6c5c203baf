"""Installs the project's profile and extcap program for a user's Wireshark, and removes them.

Users change profiles, and Wireshark itself writes into them. A list in the profile's folder has
the digest of each installed file. A file with the same digest may be replaced and removed. All
others belong to the user and stay.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from emu.errors import UsageError
from emu.folders import user_folder
from emu.output_dir import check_links, new_file, write_text, writing_into

_PROFILE = Path(__file__).with_name("profile")
_NAME = "emu"
_LIST = "installed-by-emu.json"
_MODULE = "emu.wireshark.extcap"


def install() -> tuple[Path, Path, list[Path]]:
    """Installs both. Returns the profile's folder, the extcap program, and the user's files that
    were not replaced. Raises EmuError.
    """
    profile, program = _profile(), extcap_folder() / _NAME
    _refuse_foreign(program)
    shipped = {path.name: path.read_bytes() for path in sorted(_PROFILE.iterdir())}
    with writing_into(profile, "folder by XDG_CONFIG_HOME"):
        known = _known(profile)
        kept = [profile / name for name in shipped if _is_the_users(profile / name, known)]
        for name in shipped:
            if profile / name not in kept:
                with new_file(profile / name) as stream:
                    stream.write(shipped[name])
        listed = {name: _digest(text) for name, text in shipped.items()}
        write_text(profile / _LIST, json.dumps(listed, indent=2) + "\n")
    with writing_into(program.parent, "folder by WIRESHARK_EXTCAP_DIR"):
        write_text(program, f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {_MODULE} "$@"\n')
        program.chmod(0o755)
    return profile, program, kept


def uninstall() -> list[Path]:
    """Removes only what `install` made. Returns the files that stay in the profile's folder.

    Raises EmuError.
    """
    profile, program = _profile(), extcap_folder() / _NAME
    _refuse_foreign(program)
    check_links(profile)
    check_links(program.parent)
    program.unlink(missing_ok=True)
    known = _known(profile)
    for name in (path.name for path in _PROFILE.iterdir()):
        if not _is_the_users(profile / name, known):
            (profile / name).unlink(missing_ok=True)
    if known:
        (profile / _LIST).unlink()
    with suppress(OSError):
        profile.rmdir()  # fails unless it is empty
    return sorted(profile.iterdir()) if profile.is_dir() else []


def extcap_folder() -> Path:
    """WIRESHARK_EXTCAP_DIR, or the folder that Wireshark 4.2 and later use by default."""
    return user_folder("WIRESHARK_EXTCAP_DIR", ".local/lib/wireshark/extcap")


def _profile() -> Path:
    return user_folder("XDG_CONFIG_HOME", ".config") / "wireshark/profiles" / _NAME


def _known(profile: Path) -> Mapping[str, str]:
    """The installed files -> their digests."""
    try:
        listed = json.loads((profile / _LIST).read_text())
    except (OSError, ValueError):
        return {}
    return listed if isinstance(listed, dict) else {}


def _is_the_users(path: Path, known: Mapping[str, str]) -> bool:
    """Whether there is a file that differs from the one that `install` wrote and from the shipped
    one."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return True
    if not path.exists():
        return False
    there = path.read_bytes()
    shipped = _PROFILE / path.name
    return _digest(there) != known.get(path.name) and there != shipped.read_bytes()


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _refuse_foreign(program: Path) -> None:
    """Raises UsageError when another file is in the place of the extcap program."""
    if not program.is_symlink() and not program.exists():
        return
    if (
        program.is_symlink()
        or not program.is_file()
        or _MODULE.encode() not in program.read_bytes()
    ):
        raise UsageError(
            f"{program}: not made by `emu wireshark`, so it stays as it is; move it away, or "
            "choose another folder by WIRESHARK_EXTCAP_DIR"
        )
