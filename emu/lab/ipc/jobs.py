"""The job that `emu` sends to a new lab. The lab's last message is its result.

The lab's first process receives the job as its first message, with its stderr as an open file.
"""

from __future__ import annotations

import json
from typing import TypeVar

from emu.lab.ipc.codec import Query, message
from emu.lab.ipc.messages import Done
from emu.measure.cpu import CpuSamples
from emu.measure.records import FlowRecord, MarkedBy
from emu.spec.route_recording import LinkEvent, RouteRecording
from emu.subnet.subnet import Subnet

A = TypeVar("A")


class Job(Query[A]):
    """A job whose result is an `A`."""

    out: str
    """The folder for results and captures, absolute."""


@message
class RunResult:
    """The result of `RunTraffic`. The observations of the shim and of the NICs are open files.

    `captures`: port -> file.
    """

    plane: str
    marker: MarkedBy
    notes: tuple[str, ...]
    streams: tuple[FlowRecord, ...]
    captures: dict[str, str]
    cpu: CpuSamples


@message
class RunTraffic(Job[RunResult]):
    """`emu run`: carries out the traffic of the spec."""

    spec: str
    """The resolved spec, `Spec.to_json()`."""
    out: str
    slowdown: float


@message
class RunExact(Job[RunResult]):
    """`emu run --clock exact`: carries out the traffic of the spec, in a lab whose emulated time
    waits for its frames."""

    spec: str
    out: str
    subnet: Subnet | None
    """The subnet manager's decisions, on InfiniBand."""


@message
class RoutesRecorded:
    """The result of `RecordRoutes`."""

    recording: RouteRecording


@message
class RecordRoutes(Job[RoutesRecorded]):
    """Runs FRR on every switch, and records the routes while links change."""

    spec: str
    out: str
    """Not used."""
    confs: dict[str, str]
    """The frr.conf of each switch."""
    events: tuple[LinkEvent, ...]
    until_ns: int


@message
class AnswersRecorded:
    """The result of `RecordAnswers`."""

    recordings: tuple[RouteRecording, ...]


@message
class RecordAnswers(Job[AnswersRecorded]):
    """Runs FRR on every switch, and records its answer to each state of the links."""

    spec: str
    out: str
    """Not used."""
    confs: dict[str, str]
    """The frr.conf of each switch."""
    states: tuple[LinkEvent, ...]
    """One after another; each follows when FRR has answered the one before. Their times do not
    count."""


@message
class OpenShell(Job[Done]):
    """`emu shell SPEC`: runs Mininet's prompt until the user leaves it."""

    spec: str
    out: str
    slowdown: float


@message
class ServeLab(Job[Done]):
    """`emu up`: runs a lab that answers clients until one of them ends it."""

    spec: str
    slowdown: float
    ip: bool = True
    """Whether InfiniBand's hosts may have an ib0."""
    out: str = "/"
    """Not used: the lab sends captures to the clients."""
    exact: bool = False
    """Whether the lab is on the exact clock."""

    @property
    def name(self) -> str:
        """The spec's name. The lab's owner needs no more of the spec, and does not load its model,
        whose import takes longer than all else that the owner does."""
        return str(json.loads(self.spec)["name"])


@message
class RunMininet(Job[Done]):
    """`mn --link emu`: runs Mininet's own command. The spec is made from its topology."""

    words: tuple[str, ...]
    out: str
