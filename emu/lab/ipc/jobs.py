"""What `emu` asks of a new lab: one job, whose result is the lab's last message.

The lab's first process receives the job as its first message, with its stderr as an open file.
"""

from __future__ import annotations

from typing import TypeVar

from emu.lab.ipc.codec import Query, message
from emu.lab.ipc.messages import Done
from emu.measure.cpu import CpuSamples
from emu.measure.recording import FlowRecord, MarkedBy

A = TypeVar("A")


class Job(Query[A]):
    """A job whose result is an `A`."""

    out: str
    """The folder for results and captures, absolute."""


@message
class RunResult:
    """What `RunTraffic` came to. The observations of the shim and of the NICs come as open files.

    Captures are named by their port.
    """

    plane: str
    marker: MarkedBy
    notes: tuple[str, ...]
    streams: tuple[FlowRecord, ...]
    captures: dict[str, str]
    cpu: CpuSamples


@message
class RunTraffic(Job[RunResult]):
    """`emu run`: the traffic of the spec, from its start to its end."""

    spec: str
    """The resolved spec, `Spec.to_json()`."""
    out: str
    slowdown: float


@message
class OpenShell(Job[Done]):
    """`emu shell SPEC`: Mininet's prompt, until the user leaves it."""

    spec: str
    out: str
    slowdown: float


@message
class ServeLab(Job[Done]):
    """`emu up`: a lab that answers clients until one of them ends it."""

    spec: str
    slowdown: float
    ip: bool = True
    """Whether InfiniBand's hosts may have an ib0."""
    out: str = "/"
    """Not used: captures go to the clients."""


@message
class RunMininet(Job[Done]):
    """`mn --link emu`: Mininet's own command. The spec is made from its topology."""

    words: tuple[str, ...]
    out: str
