"""The command blocks in docs/, and a function that runs them.

A block begins with ```console; a line with `$ ` is a command, the other lines are its output.
`<!-- in a lab -->` above a block reserves it for the lab tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
_BLOCK = re.compile(r"^(<!-- in a lab -->\n\n)?```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VISIBLE = ("topologies", "examples")
"""Folders of the project that commands name."""


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    commands: tuple[str, ...]
    is_for_lab: bool

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks() -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text()
        for match in _BLOCK.finditer(text):
            commands = [line[2:] for line in match[2].splitlines() if line.startswith("$ ")]
            line = text.count("\n", 0, match.start()) + 1
            name = str(page.relative_to(ROOT))
            yield Block(name, line, tuple(commands), bool(match[1]))


def run(block: Block, folder: Path, seconds: float = 300) -> None:
    """Runs all commands of a block in order, in a folder with the files that they name. Each must
    exit with 0."""
    for name in _VISIBLE:
        (folder / name).symlink_to(ROOT / name)
    scripts = Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{scripts}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    for command in block.commands:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        assert done.returncode == 0, f"{block}: {command}\n{done.stdout}{done.stderr}"
