"""What a lab's processes wrote to stderr before one of them died."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from emu.lab.last_words import memory, read

ABORTS = "import os, sys; print('first', file=sys.stderr); os.write(2, b'second\\n'); os.abort()"


def test_last_words_of_processes_are_on_one_line() -> None:
    with memory() as stderr:
        assert read(stderr) == ""
        for _ in range(2):
            subprocess.run([sys.executable, "-c", ABORTS], stderr=stderr, check=False)
        assert read(stderr) == "first; second; first; second"
        os.write(stderr, b"x" * 1000)
        assert read(stderr) == "x" * 400


def test_other_files_are_not_read(tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("w+") as own, Path("/dev/null").open("w") as nothing:
        own.write("of the user")
        own.flush()
        assert read(own.fileno()) == read(nothing.fileno()) == ""
