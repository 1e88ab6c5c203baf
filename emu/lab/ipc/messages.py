"""The messages that several kinds of processes of a lab exchange.

    `emu` ──────────────── a job ───────────▶ lab ── a set-up, Start, Stop ────────▶ shim, NICs
          ◀─ Progress, Up, result, Failure ──     ◀─ Ready, answers, Progress, Failure ──

Other messages have files of their own: `jobs.py`, `setup.py`, `queries.py` (of the shim and the
NICs), `routing.py`, and `emu/daemon/messages.py` (of a background lab). A process loads this file
before it is ready, so the file imports little.
"""

from __future__ import annotations

from emu.errors import EmuError, FabricError, HostError, UsageError
from emu.lab.ipc.codec import Json, message
from emu.measure.run_progress import RunProgress
from emu.resources import exhausted_resource


@message
class Started:
    """The lab's first process runs in its namespaces."""


@message
class Ready:
    """A process of the lab is up and waits for its set-up.

    The shim is in its own network namespace then; the lab finds the namespace by `pid`.
    """

    pid: int


@message
class Start:
    """Begin. `at_ns`: emulated time 0, on CLOCK_MONOTONIC."""

    at_ns: int
    faults: tuple[Json, ...] = ()
    """Further faults, as in a spec."""
    fault_numbers: tuple[int, ...] = ()
    """The places of these faults among those of the spec, from which they have their random
    numbers; empty: their places here."""


@message
class Stop:
    """End what `Start` began."""


@message
class Progress:
    """The present step of a job, and while traffic runs, its progress."""

    text: str
    moment: RunProgress | None = None


@message
class Up:
    """The lab is built and answers queries."""


@message
class Done:
    """The work is done; there is no other result."""


@message
class Failure:
    """An error on its way to the process that shows it to the user."""

    kind: str
    """`usage`, `host` or `fabric`."""
    text: str
    remedy: str = ""

    @staticmethod
    def of(error: Exception) -> Failure:
        """An error as a message. An error that is not an EmuError is a bug in the emulator."""
        if not isinstance(error, EmuError):  # an EmuError has a text for the user
            error = exhausted_resource(error) or error
        if isinstance(error, HostError):
            return Failure("host", error.what, error.remedy)
        if isinstance(error, UsageError):
            return Failure("usage", str(error))
        if isinstance(error, EmuError):
            return Failure("fabric", str(error))
        return Failure("fabric", f"internal error: {type(error).__name__}: {error}")

    def error(self) -> EmuError:
        """The message as an error again."""
        if self.kind == "host":
            return HostError(self.text, remedy=self.remedy)
        return UsageError(self.text) if self.kind == "usage" else FabricError(self.text)
