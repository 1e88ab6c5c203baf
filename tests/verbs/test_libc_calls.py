"""libc's calls do in emulated time what they do in real time, but for how long they take."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_programs import ProgramsLab

pytestmark = needs_verbs


def test_libc_calls_are_as_in_real_time(lab: ProgramsLab, open_folder: Path) -> None:
    program = compiled("libc_calls", open_folder)
    alone = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True)
    ended = lab.run("h1", program, "verbs")
    assert ended.err == ""
    assert ended.out == alone.stdout
