"""Builds the RNIC core's self-tests, and runs them.

A self-test is a C program `*_test.c` of functions `TEST(name)`; it runs the one
that is named on its command line.
"""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path

from emu._build.core import Variant, compile_all, link_program, sources

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


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


def build(variant: Variant) -> Path:
    """Compiles every program; returns their folder.

    What is up to date stays, whoever made it: an earlier session, or a worker beside this one.
    """
    folder = variant.folder / "tests" / "rnic"
    (ROOT / folder).mkdir(parents=True, exist_ok=True)
    with (ROOT / folder / ".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        _build_in(folder, variant)
    return ROOT / folder


def _build_in(folder: Path, variant: Variant) -> None:
    core = sources()
    own = [path.relative_to(ROOT) for path in sorted(HERE.glob("*.c"))]
    objects = compile_all(variant, [*core, *own])
    shared = [*objects[: len(core)], folder / "bench.o"]
    programs = [made for made in objects[len(core) :] if made not in shared]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda made: _link(made, shared, variant), programs))


def _link(made: Path, shared: list[Path], variant: Variant) -> None:
    link_program(variant, [made, *shared], made.with_suffix(""))


def run(program: Path, *arguments: str, script: str = "") -> str:
    """What a program printed. Fails the test with its words when it fails."""
    done = subprocess.run(
        [program, *arguments], input=script, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{program.name} {' '.join(arguments)}\n{done.stderr}"
    return done.stdout
