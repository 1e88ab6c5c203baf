"""A virtual machine with Debian's kernel, for tests that need its modules.

    machine = Machine(folder)
    machine.run("modprobe sch_red").code == 0

QEMU emulates one processor in software, so the machine runs anywhere, for any user, at a tenth to
a fiftieth of this computer's speed. The machine can read this computer's files, but can write only
to `shared`, which has the same path inside and outside. It has no network. Everything in it runs
as root, one script at a time.

The duration of a script is unknown, so there is no limit on it. The wait ends only when neither
the console nor the script has written anything for `_SILENT_SECONDS`.
"""

from __future__ import annotations

import base64
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.vm.kernel import unpacked

ROOT = Path(__file__).parents[2]
_INSIDE = Path(__file__).with_name("inside.sh")
_MEMORY = "3G"
_SILENT_SECONDS = 900.0
"""Ten times the longest silence seen on an idle computer."""
_LOOK_SECONDS = 1.0
_LAST_LINES = 20
"""Lines of the console in an error."""
_FILES = "local,id=files,path=/,security_model=none,readonly=on,multidevs=remap"


class Ended(NamedTuple):
    """The exit code and the output of a script."""

    code: int
    out: str
    err: str


class Machine:
    """Boots when it is created, and runs scripts inside a `with` block."""

    def __init__(self, folder: Path) -> None:
        """`folder` keeps the kernel, which is downloaded once."""
        self.shared = folder / "shared"
        self.shared.mkdir(parents=True, exist_ok=True)
        self._console = folder / "console"
        kernel = unpacked(folder / "kernel")
        inside = ["exec", "bash", _INSIDE, self.shared, kernel.parents[1]]
        self._process = subprocess.Popen(
            [
                *(Path(sys.executable).with_name("virtme-run"), "--kimg", kernel, "--mods", "auto"),
                *("--disable-kvm", "--force-9p", "--memory", _MEMORY, "--cpus", "1"),
                *("--cwd", ROOT, "--rwdir", self.shared),
                *("-q=-fsdev", f"-q={_FILES}"),
                *("-q=-device", "-q=virtio-9p-pci,fsdev=files,mount_tag=files"),
                *("--script-sh", shlex.join(map(str, inside))),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._console.open("wb"),
            bufsize=0,
            start_new_session=True,
        )

    def __enter__(self) -> Machine:
        """Wait until the machine can run scripts."""
        try:
            self._wait_for("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """Kill the machine's emulator without a shutdown."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def run(self, script: str) -> Ended:
        """Run a bash script in the checkout's folder.

        A TimeoutError means that the machine is gone.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(base64.b64encode(script.encode()) + b"\n")
        code = int(self._wait_for("ended "))
        return Ended(code, *((self.shared / name).read_text() for name in ("out", "err")))

    def _wait_for(self, begin: str) -> str:
        """The rest of the next line that begins with `begin`."""
        stdout = self._process.stdout
        assert stdout is not None
        written, silent_since = self._written(), time.monotonic()
        while time.monotonic() < silent_since + _SILENT_SECONDS:
            if select.select([stdout], [], [], _LOOK_SECONDS)[0]:
                line = stdout.readline().decode().strip()
                if line.startswith(begin):
                    return line.removeprefix(begin)
                if not line:
                    raise RuntimeError(
                        f"the machine has ended with {self._process.wait()}; {self._last_words()}"
                    )
            if self._written() != written:
                written, silent_since = self._written(), time.monotonic()
        self.__exit__()
        raise TimeoutError(
            f"no {begin.strip()!r} from the machine, and nothing else either; {self._last_words()}"
        )

    def _last_words(self) -> str:
        """The end of the console, which mostly shows the cause of a failure."""
        lines = self._console.read_text(errors="replace").splitlines()
        if not lines:
            return f"its console, {self._console}, is empty"
        end = "".join(f"\n  {line}" for line in lines[-_LAST_LINES:])
        return f"its console, {self._console}, ends with:{end}"

    def _written(self) -> int:
        """The number of bytes on the console and in the script's output."""
        files = (self._console, self.shared / "out", self.shared / "err")
        return sum(path.stat().st_size for path in files if path.exists())
