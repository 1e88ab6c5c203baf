"""The example program for users (on the real clock: tests/lab/test_live_verbs.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "rdma_ping.py"


def test_example_prints_the_duration_of_its_operations() -> None:
    """Three lines; the example has checked the bytes itself."""
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    names = [line.rsplit(maxsplit=2)[0] for line in done.stdout.splitlines()]
    assert names == ["write", "read", "fetch and add"]
