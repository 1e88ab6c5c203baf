"""Puts our profile and our extcap where a user's Wireshark looks for them, and takes them away."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

_PROFILE = Path(__file__).with_name("profile")
_NAME = "emu"


def install() -> tuple[Path, Path]:
    """Returns the profile's folder and the extcap program. What was there of ours is replaced."""
    profile, program = _profile(), extcap_folder() / _NAME
    shutil.copytree(_PROFILE, profile, dirs_exist_ok=True)
    program.parent.mkdir(parents=True, exist_ok=True)
    python, module = shlex.quote(sys.executable), "emu.wireshark.extcap"
    program.write_text(f'#!/bin/sh\nexec {python} -m {module} "$@"\n')
    program.chmod(0o755)
    return profile, program


def uninstall() -> None:
    """Takes away what `install` has made, and nothing else."""
    shutil.rmtree(_profile(), ignore_errors=True)
    (extcap_folder() / _NAME).unlink(missing_ok=True)


def extcap_folder() -> Path:
    """WIRESHARK_EXTCAP_DIR, or where Wireshark 4.2 and later look by themselves."""
    chosen = os.environ.get("WIRESHARK_EXTCAP_DIR")
    return Path(chosen) if chosen else Path.home() / ".local/lib/wireshark/extcap"


def _profile() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "wireshark/profiles" / _NAME
