"""OpenSM, the subnet manager that real clusters run, against a simulated fabric.

It sweeps when it starts and whenever a trap reports a changed link, and writes
dump files in every sweep. It runs without root; all its files are in `workdir`,
and it does not read the machine's configuration.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from emu.errors import FabricError
from emu.subnet.policy import CONF, Policy
from emu.subnet.programs import last_lines, program, text_of
from topologies.graph import Topology

_SECONDS_TO_SWEEP = 10.0
_SECONDS_FOR_A_CABLE = 0.05
"""Beyond that: a sweep asks each port for its state, and works out routes for each LID."""
_SECONDS_BETWEEN_POLLS = 0.005
_LOG_LEVEL = "0x43"  # errors, information, and routing, which makes OpenSM dump its tables
_LOG, _OUTPUT = "opensm.log", "opensm.out"
_UP, _GIVEN_UP = "SUBNET UP", "Errors during initialization"
_MOST_FAILURES = 2
"""Of sweeps. One fails if links change meanwhile, or a busy machine is slow to answer it; the next
one does not."""
_TIMES_TO_ASK = 10
"""For a sweep, while it does not come. OpenSM forgets a trap that it gets late in a sweep."""
_CONFIGURED = "tables configured on all switches"
"""It then writes its dump files, and says last whether the subnet is up."""
_ENGINE = re.compile(rf"(\S+) {_CONFIGURED}")
_LOG_TIME = "%Y %b %d %H:%M:%S %f"
"""The time of a line, which the log has without the year."""
_SECONDS_TO_WRITE = 2.0
_SECONDS_TO_BEGIN = 10.0


class OpenSm:
    """A running subnet manager. Use as a context manager."""

    def __init__(
        self,
        topology: Topology,
        policy: Policy,
        environment: Mapping[str, str],
        workdir: Path,
        *,
        priority: int = 15,
    ) -> None:
        """`environment` connects it to the simulator. The highest priority is master."""
        self._patience_seconds = _SECONDS_TO_SWEEP + _SECONDS_FOR_A_CABLE * len(topology.cables)
        self.workdir = workdir
        self._engine = policy.engine
        self._sweeps_seen = 0
        self._log_bytes_seen = 0
        self._failures_seen = 0
        workdir.mkdir(parents=True, exist_ok=True)
        policy.write(topology, workdir)
        (workdir / _LOG).unlink(missing_ok=True)
        command = [
            *program("opensm", package="opensm"),
            *("--sweep", "0", "--config", CONF, "--priority", str(priority)),
            *("--log_file", _LOG, "--erase_log_file", "-D", _LOG_LEVEL),
            *("--dump_files_dir", "."),
        ]
        with (workdir / _OUTPUT).open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=workdir,
                env={**os.environ, **environment, "OSM_TMP_DIR": ".", "OSM_CACHE_DIR": "."},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Ends it as a crash would: it tells no other manager."""
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def sweeps(self) -> int:
        """The number of finished sweeps."""
        return text_of(self.workdir / _LOG).count(_UP)

    def sweep_now(self) -> None:
        """Starts a sweep of the whole fabric.

        Waits for a process that has just begun: SIGHUP ends it until it handles that signal.
        """
        deadline = time.monotonic() + _SECONDS_TO_BEGIN
        while self.is_running and not _handles(self.pid, signal.SIGHUP):
            if time.monotonic() > deadline:
                raise self._failed(f"did not begin within {_SECONDS_TO_BEGIN:.0f} s")
            time.sleep(_SECONDS_BETWEEN_POLLS)
        self._process.send_signal(signal.SIGHUP)

    def sweep_and_wait(self) -> None:
        """Waits for a sweep that begins after this call. Raises FabricError.

        The first that ends may have begun before it, so it is the second.
        """
        self.has_swept()
        for _ in range(2):
            self.sweep_now()
            self.wait_for_next_sweep()

    def wait_for_next_sweep(self) -> None:
        """Waits for a sweep after the one last waited for. Raises FabricError."""
        self.wait_for_sweep(self._sweeps_seen + 1)
        self._sweeps_seen = self.sweeps

    def has_swept(self) -> bool:
        """Whether it has swept since the last call, or wait. Cheap while it is idle."""
        log = self.workdir / _LOG
        size = log.stat().st_size if log.exists() else 0
        if size == self._log_bytes_seen:
            return False
        self._log_bytes_seen = size
        before, self._sweeps_seen = self._sweeps_seen, self.sweeps
        return self._sweeps_seen > before

    def wait_for_sweep(self, number: int) -> None:
        """Waits for this number of sweeps. Raises FabricError if OpenSM fails or takes too long."""
        deadline = time.monotonic() + self._patience_seconds
        failed_before = self._failures_seen
        ask_again = time.monotonic() + self._patience_seconds / _TIMES_TO_ASK
        while (sweeps := self.sweeps) < number:
            began = time.monotonic()
            log = text_of(self.workdir / _LOG)
            if f"cannot find or setup routing engine '{self._engine}'" in log:
                raise FabricError(
                    f"OpenSM has no routing engine {self._engine!r}; "
                    "it has updn, dnup, minhop, ftree, dor, lash, nue, sssp and dfsssp"
                )
            failures = log.count(_GIVEN_UP)
            if self._process.poll() is not None or failures - failed_before > _MOST_FAILURES:
                raise self._failed("could not bring the subnet up")
            if failures > self._failures_seen or (sweeps and began >= ask_again):
                self._failures_seen = failures
                ask_again = began + self._patience_seconds / _TIMES_TO_ASK
                self.sweep_now()
            if time.monotonic() >= deadline:
                raise self._failed(f"did not finish within {self._patience_seconds:.0f} s")
            # Reading a long log may take half of the time, and no more.
            time.sleep(max(_SECONDS_BETWEEN_POLLS, time.monotonic() - began))

    def engine_used(self) -> str:
        """The engine that made the last tables: OpenSM falls back if an engine fails."""
        made_tables: list[str] = _ENGINE.findall(text_of(self.workdir / _LOG))
        return made_tables[-1]

    def tables_ready_s(self) -> float:
        """When it had last set the tables of all switches, as time.time() counts."""
        lines = text_of(self.workdir / _LOG).splitlines()
        last = next(line for line in reversed(lines) if _CONFIGURED in line)
        written = f"{datetime.now().year} {' '.join(last.split()[:4])}"
        return datetime.strptime(written, _LOG_TIME).timestamp()

    def dump(self, name: str) -> str:
        """The text of a file that it has written."""
        return text_of(self.workdir / name)

    def dump_of_last_sweep(self, name: str) -> str:
        """The text of a file that it writes in each sweep. Waits while a sweep writes it. Raises
        FabricError."""
        deadline = time.monotonic() + _SECONDS_TO_WRITE
        while self.is_running:
            before = self._sweeps_written()
            text = self.dump(name)
            if before is not None and self._sweeps_written() == before:
                return text
            if time.monotonic() > deadline:
                raise self._failed(f"did not write {name} within {_SECONDS_TO_WRITE:.0f} s")
            time.sleep(_SECONDS_BETWEEN_POLLS)
        return self.dump(name)

    def _sweeps_written(self) -> int | None:
        """The number of sweeps that have written their dump files; None while one may do so."""
        log = text_of(self.workdir / _LOG)
        ended = max(log.rfind(_UP), log.rfind(_GIVEN_UP))
        return log.count(_CONFIGURED) if log.rfind(_CONFIGURED) < ended else None

    def _failed(self, what: str) -> FabricError:
        log_end = last_lines(self.workdir / _LOG, self.workdir / _OUTPUT)
        return FabricError(f"OpenSM {what}; the last lines of its log:\n{log_end}")


def _handles(pid: int, signal_number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    handled = int(status.partition("SigCgt:")[2].split()[0], base=16)
    return bool(handled >> (signal_number - 1) & 1)
