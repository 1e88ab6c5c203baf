"""A machine with Debian's own kernel, for what other kernels cannot do.

    machine = Machine(folder)
    machine.run("modprobe sch_red").code == 0

QEMU emulates one processor in software, so it runs anywhere, as anybody, ten to fifty times slower
than this one. The machine sees this computer's files and can write none of them, but
those in `shared`, which is the same path inside and outside. It has no network.
Everything in it runs as root, one script at a time.
"""

from __future__ import annotations

import base64
import os
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.vm.kernel import unpacked

ROOT = Path(__file__).parents[2]
_INSIDE = Path(__file__).with_name("inside.sh")
_MEMORY = "3G"
_BOOT_SECONDS = 600.0
"""A tenth of that, on a machine that has nothing else to do."""
_FILES = "local,id=files,path=/,security_model=none,readonly=on,multidevs=remap"


class Ended(NamedTuple):
    """What a script left: its exit code, and what it wrote."""

    code: int
    out: str
    err: str


class Machine:
    """Boots when it is made, and serves in the body of a `with`."""

    def __init__(self, folder: Path) -> None:
        """`folder` keeps the kernel, which is fetched once."""
        self.shared = folder / "shared"
        self.shared.mkdir(parents=True, exist_ok=True)
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
            stderr=(folder / "console").open("wb"),
            bufsize=0,
            start_new_session=True,
        )

    def __enter__(self) -> Machine:
        """Returns when the machine serves."""
        try:
            self._wait_for("ready", _BOOT_SECONDS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """Its processor stops: what is in it ends unasked."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def run(self, script: str, *, seconds: float = 300) -> Ended:
        """Runs a bash script in the checkout's folder. Raises TimeoutError."""
        assert self._process.stdin is not None
        self._process.stdin.write(base64.b64encode(script.encode()) + b"\n")
        code = int(self._wait_for("ended ", seconds))
        return Ended(code, *((self.shared / name).read_text() for name in ("out", "err")))

    def _wait_for(self, begin: str, seconds: float) -> str:
        """The rest of the next line that begins so."""
        stdout = self._process.stdout
        assert stdout is not None
        while select.select([stdout], [], [], seconds)[0]:
            line = stdout.readline().decode().strip()
            if line.startswith(begin):
                return line.removeprefix(begin)
            if not line:
                raise RuntimeError(f"the machine has ended with {self._process.wait()}")
        raise TimeoutError(f"no {begin.strip()!r} from the machine in {seconds:g} s")
