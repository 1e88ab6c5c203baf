"""Programs in C that call verbs, for tests. They are in tests/verbs/programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.user import ROOT

_SOURCES = ROOT / "tests/verbs/programs"
_HEADER = Path("/usr/include/infiniband/verbs.h")

needs_verbs = pytest.mark.skipif(
    shutil.which("gcc") is None or not _HEADER.exists(),
    reason="needs gcc and infiniband/verbs.h: apt-get install gcc libibverbs-dev",
)


def compiled(name: str, folder: Path) -> str:
    """Compiles a program into a folder that every user can enter. Returns its path."""
    program = folder / name
    flags = ("-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function")
    command = ("gcc", *flags, "-o", program, _SOURCES / f"{name}.c", "-libverbs", "-lpthread")
    subprocess.run(command, check=True)
    program.chmod(0o755)
    return str(program)
