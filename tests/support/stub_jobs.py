"""The jobs of labs whose shim and NICs are stubs (`stub_inside.py`), and their results."""

from __future__ import annotations

from emu.lab.ipc.codec import message
from emu.lab.ipc.jobs import Job, RunResult
from emu.lab.ipc.messages import Done


@message
class Outputs:
    """The output of commands."""

    marker: str
    notes: tuple[str, ...]
    output: tuple[str, ...]


@message
class RunStubs(Job[RunResult]):
    """The job of a real run, with stubs."""

    spec: str
    out: str
    slowdown: float = 1000
    rnic_fails: str = ""
    """The error with which the NICs fail; empty: they do not."""


@message
class Idle(Job[Done]):
    """Builds the lab, reports it, and waits for the end."""

    spec: str
    out: str
    slowdown: float = 1000


@message
class RunCommands(Job[Outputs]):
    """Builds the lab and runs commands: (namespace, word, ...) each."""

    spec: str
    out: str
    commands: tuple[tuple[str, ...], ...]
    slowdown: float = 100
    real_shim: bool = False


@message
class Prompt(Job[Done]):
    """Mininet's prompt."""

    spec: str
    out: str
    slowdown: float = 1000


@message
class Crash(Job[Done]):
    """Fails with an exception that is a bug."""

    out: str
