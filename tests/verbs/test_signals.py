"""Signals in programs on the exact clock. What the library needs for itself, they do not notice."""

from __future__ import annotations

import errno
import platform
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.verbs_programs import ProgramsLab

SIGNALS = {
    "main-blocks-all": 3,
    "unblocked": 0,
    "thread-blocks-all": 1,
    "attribute-blocks-all": 1,
    "writer-blocks-all": 1,
    "handler-blocks-all": 3,
    "cq-event": errno.EINTR,
    "async-event": errno.EINTR,
    "cm-event": errno.EINTR,
    "restarted": 2,
    "overflow": 1,
    "sent": 2,
    "sent-while-blocked": 1,
    "sent-without-handler": int(signal.SIGSEGV),
}
"""What programs/signals.c prints."""

needs_compiler = pytest.mark.skipif(
    shutil.which("gcc") is None
    or not Path("/usr/include/rdma/rdma_cma.h").exists()
    or platform.machine() != "x86_64",
    reason="needs x86-64, gcc and rdma_cma.h: apt-get install gcc librdmacm-dev",
)


@needs_compiler
def test_signals_are_as_without_the_library(lab: ProgramsLab, tmp_path: Path) -> None:
    program = tmp_path / "signals"
    source = Path(__file__).parent / "programs" / "signals.c"
    subprocess.run(["gcc", "-o", program, source, "-lrdmacm", "-libverbs", "-lpthread"], check=True)
    program.chmod(0o755)
    lines = [line.split() for line in lab.prints("h1", str(program)).splitlines()]
    assert {name: int(result) for name, result in lines} == SIGNALS
