"""Builds and runs the self-tests of the C core.

A self-test is a C program `*_test.c` of functions `TEST(name)`; it runs the one that is named on
its command line.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fcntl import LOCK_EX, flock
from pathlib import Path

from emu._build.core import Variant, compile_all, link_program, sources

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SUPPORT = HERE.parent / "support"
BUILT_BY_THEIR_TEST = ("clock_trace.c", "tap_threads.c")


@dataclass(frozen=True)
class SelfTest:
    """One `TEST` of one program."""

    program: str
    name: str


def self_tests() -> list[SelfTest]:
    return [
        SelfTest(source.stem, name)
        for source in sorted(HERE.rglob("*_test.c"))
        for name in re.findall(r"^TEST\((\w+)\)", source.read_text(), re.MULTILINE)
    ]


def build(variant: Variant) -> Path:
    """Compiles every program; returns their folder.

    Objects that are up to date stay, also those of an earlier session or of a parallel worker.
    """
    folder = ROOT / variant.folder / "tests" / "core"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        _build_in(folder, variant)
    return folder


def _build_in(folder: Path, variant: Variant) -> None:
    tests = replace(variant, flags=(*variant.flags, f"-I{SUPPORT.relative_to(ROOT)}"))
    core = compile_all(variant, sources())
    helpers = compile_all(tests, _within_root(SUPPORT.glob("*.c")))
    programs = compile_all(tests, _within_root(_sources_of_programs()))

    def link(program: Path) -> None:
        link_program(variant, [program, *helpers, *core], folder / program.stem)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(link, programs))


def _sources_of_programs() -> Iterator[Path]:
    """All C sources except those that a test of their own builds with other flags."""
    return (path for path in HERE.rglob("*.c") if path.name not in BUILT_BY_THEIR_TEST)


def _within_root(paths: Iterable[Path]) -> list[Path]:
    return sorted(path.relative_to(ROOT) for path in paths)


def run(program: Path, *arguments: str, script: str = "") -> str:
    """The output of a program. Fails the test with the program's errors if it fails."""
    done = subprocess.run(
        [program, *arguments], input=script, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{program.name} {' '.join(arguments)}\n{done.stderr}"
    return done.stdout
