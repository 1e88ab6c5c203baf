"""Captures that one thread writes and another reads."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
CORE = HERE.parents[2] / "emu/core"


def test_tap_is_safe_between_two_threads(tmp_path: Path) -> None:
    """Each frame is either read or counted as missed, and the thread sanitizer reports nothing. The
    sanitizer needs a fixed memory layout and tolerates no other sanitizer, so the test disables
    address randomisation and LD_PRELOAD."""
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
