"""Programs that use no verbs, with the verbs library in front, as `emu exec` starts them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "emu/verbs/emu_verbs.so"
SECONDS = 20


def run(*command: str) -> str:
    """What the program prints. It must end well."""
    environment = os.environ | {"LD_PRELOAD": str(LIBRARY), "EMU_VERBS": "/no/such/socket"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=True
    ).stdout


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("echo $(echo $(echo $(echo inner)))", "inner"),
        ("(echo a; (echo b; (echo c))) | cat | tr '\\n' ' ' | cat", "a b c "),
        ("timeout 10 sh -c 'sleep 0.01; echo slept'", "slept"),
        ("for i in 1 2 3; do x=$(for j in 1 2; do echo $j; done | wc -l); done; echo $x", "2"),
    ],
)
def test_shells_fork_as_deep_as_they_like(script: str, printed: str) -> None:
    assert run("bash", "-c", script).strip() == printed.strip()


def test_clocks_and_sleeps_are_real() -> None:
    program = (
        "import time, threading\n"
        "began = time.monotonic_ns(), time.time_ns()\n"
        "threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(min(time.monotonic_ns() - began[0], time.time_ns() - began[1]) >= 10_000_000)"
    )
    assert run("/usr/bin/python3", "-c", program) == "True\n"
