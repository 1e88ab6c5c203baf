"""Commands in docs/ that need a lab work as written there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doc_blocks import Block, blocks, run


@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", [one for one in blocks() if one.is_for_lab], ids=str)
def test_documented_commands_run_in_a_lab(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    try:
        run(block, tmp_path)
    finally:  # a failed command leaves its lab up
        subprocess.run([sys.executable, "-m", "emu.cli.main", "down"], capture_output=True)
