"""What the processes of a lab say to each other: JSON lines, one message each.

    `emu` ──────────── Request ──────────▶ lab ── Setup, Start, Look, Stop ─────▶ shim, NICs
          ◀─ Progress, Result, Failure ──     ◀─ Ready, Done, Progress, Failure ──

A line is the message's fields and its `type`:

    {"type": "Ready", "pid": 42}
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

from emu.errors import EmuError, FabricError, HostError, RemoteProtocolError, UsageError
from emu.measure.recording import MarkedBy
from emu.resources import lacking

Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What `emu` asks of a new lab; its only message to it. Its stderr comes along."""

    job: str
    """`run`, `shell`, `stand` or `mn`."""
    spec: str
    """The resolved spec, `Spec.to_json()`; empty for `mn`, which finds out itself."""
    out: str
    """The folder for results and captures, absolute."""
    options: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Started:
    """The lab's first process runs in its namespaces."""


@dataclass(frozen=True)
class Ready:
    """A process of the lab is up and waits for its `Setup`.

    The shim is in its own network namespace by now; `pid` is how the lab finds it.
    """

    pid: int


@dataclass(frozen=True)
class Setup:
    """Everything a process of the lab needs. Answered by `Done`."""

    spec: str
    plane: str
    """`ovs` or `shim`."""
    marker: MarkedBy
    """With `ebpf`, the descriptors of its depth board and its curves come along."""
    out: str
    hosts: dict[str, int]
    """Host -> a process in its network namespace."""
    options: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Start:
    """Begin; `at_ns` on CLOCK_MONOTONIC is the emulated time 0. Answered by `Done`."""

    at_ns: int
    faults: list[Json] = field(default_factory=list)
    """As in a spec, beside those of the `Setup`."""


@dataclass(frozen=True)
class Look:
    """Say what there is to see now, and go on. Answered by `Done` (emu.lab.show)."""


@dataclass(frozen=True)
class Stop:
    """Stop emulating and say what happened. Answered by `Done`."""


@dataclass(frozen=True)
class Progress:
    """What a job is doing, and while traffic runs, how far it is."""

    text: str
    moment: Json | None = None
    """The fields of an `emu.measure.progress.Progress`."""


@dataclass(frozen=True)
class Up:
    """A standing lab is built and answers whoever asks."""


@dataclass(frozen=True)
class Ask:
    """Something that a standing lab is asked for, see `emu.daemon.lab_server`; `Done` answers."""

    what: str
    options: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Tap:
    """Shows the frames at a port to the socket that comes along. Answered by `Done`."""

    port: str
    since_start: bool = False
    """And those before, as far as they are kept."""


@dataclass(frozen=True)
class LinksChanged:
    """From the shim to whoever routes: links were lost or came back."""

    at_ps: int
    """When the last of them did, in emulated time."""
    down: list[str]
    """Every cable that is lost now, by one of its ports."""


@dataclass(frozen=True)
class Tables:
    """From the subnet manager to the shim: follow these tables."""

    lfts: Json
    """All of them, as `emu.subnet.Subnet` has them."""
    at_ps: int
    down: list[str]
    """The change that they are the answer to."""
    seconds: float
    """Wall-clock time since then."""


@dataclass(frozen=True)
class Routes:
    """From the lab to the shim of an Ethernet fabric: follow these routes. Answered by
    `Converging`."""

    at_ps: int
    """When the links changed that they are the answer to."""
    changes: dict[str, dict[str, list[int]]]
    """Switch -> host -> port numbers; none: it cannot be reached."""


@dataclass(frozen=True)
class Converging:
    """From the shim to whoever routes: the tables or routes are known."""

    at_ps: int
    """When the links changed that they are the answer to."""
    in_force_ps: int
    """When the last switch follows them."""


@dataclass(frozen=True)
class RoutesLoaded:
    """From the lab to the shim: Open vSwitch's tables have the routes, too."""

    at_ps: int
    """When the links changed that they are the answer to."""


@dataclass(frozen=True)
class Measure:
    """How punctual have you been? Answered by `Done`, see `emu.daemon.fidelity`."""


@dataclass(frozen=True)
class Faults:
    """Sets or clears a fault, or only asks. Answered by `Done`, with all
    that there are then (emu.daemon.faults)."""

    do: str
    """`set`, `clear` or `list`."""
    name: str = ""
    fault: Json = field(default_factory=dict)
    """As in a spec, to be set."""


@dataclass(frozen=True)
class Done:
    """The answer to all that is asked or told here. Open files may come along."""

    value: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """The job's result; the lab's last message. Open files may come along."""

    value: Json


@dataclass(frozen=True)
class Failure:
    """An error on its way to the process that can tell it to the user."""

    kind: str
    """`usage`, `host` or `fabric`."""
    text: str
    remedy: str = ""

    @staticmethod
    def of(error: Exception) -> Failure:
        """An error as a message. What is no EmuError is a fault of ours."""
        if not isinstance(error, EmuError):  # that one has said it already
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


Message = (
    Request
    | Started
    | Ready
    | Setup
    | Start
    | Look
    | Stop
    | Progress
    | Up
    | Ask
    | Tap
    | Faults
    | LinksChanged
    | Tables
    | Routes
    | Converging
    | RoutesLoaded
    | Measure
    | Done
    | Result
    | Failure
)

_TYPES: dict[str, type[Message]] = {cls.__name__: cls for cls in get_args(Message)}


def to_line(message: Message) -> bytes:
    """A message as one line of JSON, newline included."""
    fields = {"type": type(message).__name__, **asdict(message)}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes) -> Message:
    """The message in a line of JSON. Raises RemoteProtocolError for anything else."""
    try:
        fields = json.loads(line)
        return _TYPES[fields.pop("type")](**fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RemoteProtocolError(f"{line[:60]!r} is no message of a lab") from None
