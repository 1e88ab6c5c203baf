"""What any two processes of a lab say to each other.

    `emu` ──────────────── a job ───────────▶ lab ── a set-up, Start, Stop ────────▶ shim, NICs
          ◀─ Progress, Up, result, Failure ──     ◀─ Ready, answers, Progress, Failure ──

What only some of them say is in files of its own: `jobs.py`, `setup.py`, `queries.py` (of the
shim and the NICs), `routing.py`, and `emu/daemon/messages.py` (of a lab in the background). This
file is loaded before a process is ready, so it imports little.
"""

from __future__ import annotations

from emu.errors import EmuError, FabricError, HostError, UsageError
from emu.lab.ipc.codec import Json, message
from emu.measure.run_progress import RunProgress
from emu.resources import lacking


@message
class Started:
    """The lab's first process runs in its namespaces."""


@message
class Ready:
    """A process of the lab is up and waits for its set-up.

    The shim is in its own network namespace by now; `pid` is how the lab finds it.
    """

    pid: int


@message
class Start:
    """Begin; `at_ns` on CLOCK_MONOTONIC is the emulated time 0."""

    at_ns: int
    faults: tuple[Json, ...] = ()
    """As in a spec, in addition to those of the set-up."""


@message
class Stop:
    """End what `Start` began."""


@message
class Progress:
    """What a job is doing, and while traffic runs, how far it is."""

    text: str
    moment: RunProgress | None = None


@message
class Up:
    """The lab is built and answers queries."""


@message
class Done:
    """It is done; there is nothing more to say."""


@message
class Failure:
    """An error on its way to the process that shows it to the user."""

    kind: str
    """`usage`, `host` or `fabric`."""
    text: str
    remedy: str = ""

    @staticmethod
    def of(error: Exception) -> Failure:
        """An error as a message. An error that is no EmuError is a bug in the emulator."""
        if not isinstance(error, EmuError):  # an EmuError has its text already
            error = lacking(error) or error
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
