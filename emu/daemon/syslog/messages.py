"""The set-up of the process that sends syslog messages."""

from __future__ import annotations

from emu.lab.ipc.codec import Query, message
from emu.lab.ipc.messages import Done


@message
class SetUpSyslog(Query[Done]):
    """Report the events from now on. The open file is a session with the lab."""

    spec: str
    collector: str
    """Its address."""
    tasks: dict[str, int]
    """Node -> a thread in its agent's namespaces."""
