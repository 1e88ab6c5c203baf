"""A PATH on which programs are missing or are replaced."""

from __future__ import annotations

from pathlib import Path


def path_of_programs(folder: Path, *, without: str = "", **stubs: str) -> str:
    """A PATH with all programs of /usr/bin except one, and with shell scripts in place of some."""
    programs = folder / "bin"
    programs.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name not in (without, *stubs):
            (programs / program.name).symlink_to(program)
    for name, script in stubs.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    return str(programs)
