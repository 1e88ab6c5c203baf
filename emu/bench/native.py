"""Compiles the benchmark's own C code and loads it."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from emu.errors import HostError

_SOURCE = Path(__file__).with_name("loops.c")
_COMMAND = ("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")


@contextmanager
def compiled() -> Iterator[Path]:
    """The compiled library, which is removed at the end. Raises HostError without a compiler."""
    with TemporaryDirectory(prefix="emu-bench-") as folder:
        Path(folder).chmod(0o755)
        library = Path(folder, "loops.so")
        try:
            subprocess.run([*_COMMAND, str(_SOURCE), "-o", str(library)], check=True)
        except FileNotFoundError:
            raise HostError(
                "the compiler gcc is missing", remedy="sudo apt-get install gcc"
            ) from None
        yield library


def loops(library: Path) -> ctypes.CDLL:
    """The functions of loops.c."""
    opened = ctypes.CDLL(str(library))
    opened.relay.restype = ctypes.c_uint32
    opened.flood.restype = ctypes.c_int64
    return opened
