"""Builds the RNIC core's self-tests with sanitizers, and runs them.

A self-test is a C program `*_test.c` of functions `TEST(name)`; it runs the one
that is named on its command line.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

_SHIM = ("clock", "credit", "crc16", "frame", "ipv4", "pause", "port", "tap", "vlarb")
"""What of the switches' core a NIC needs: its port and the frames on it."""
_FLAGS = (
    "-std=gnu11",
    "-O1",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    *(f"-I{folder}" for folder in (HERE, ROOT / "traffic" / "rnic", ROOT / "emu" / "shim")),
)


@dataclass(frozen=True)
class SelfTest:
    """One `TEST` of one program."""

    program: str
    name: str


def self_tests() -> list[SelfTest]:
    return [
        SelfTest(source.stem, name)
        for source in sorted(HERE.glob("*_test.c"))
        for name in re.findall(r"^TEST\((\w+)\)", source.read_text(), re.MULTILINE)
    ]


def build(folder: Path) -> None:
    """Compiles every program into `folder`."""
    common = sorted((ROOT / "traffic" / "rnic").glob("*.c"))
    common += [ROOT / "emu" / "shim" / f"{name}.c" for name in _SHIM]
    common.append(HERE / "bench.c")
    _compile(["-c", *map(str, common)], folder)
    objects = [f"{source.stem}.o" for source in common]
    for program in sorted({*HERE.glob("*.c")} - {HERE / "bench.c"}):
        _compile([str(program), *objects, "-ldeflate", "-o", program.stem], folder)


def run(program: Path, *arguments: str, script: str = "") -> str:
    """What a program printed. Fails the test with its words when it fails."""
    done = subprocess.run(
        [program, *arguments], input=script, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{program.name} {' '.join(arguments)}\n{done.stderr}"
    return done.stdout


def _compile(arguments: list[str], folder: Path) -> None:
    done = subprocess.run(["cc", *_FLAGS, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
