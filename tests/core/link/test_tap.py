"""Captures that one thread makes and another takes out."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
CORE = HERE.parents[2] / "emu/core"


def test_another_thread_takes_out_and_asks_what_was_missed(tmp_path: Path) -> None:
    """Each frame is one or the other, and the thread sanitizer finds nothing. It wants its memory
    where it was made for, which a kernel that spreads addresses far does not give it, nor another
    sanitizer beside it."""
    program = tmp_path / "tap_threads"
    flags = ["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread"]
    sources = [str(CORE / "link/tap.c"), str(HERE / "tap_threads.c")]
    command = ["cc", *flags, f"-I{CORE}", *sources, "-o", str(program), "-pthread"]
    subprocess.run(command, check=True)
    alone = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(["setarch", "-R", program], env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    captured, taken, missed = map(int, done.stdout.split())
    assert captured == taken + missed
    assert missed > 0
