"""The set-up of the exporter's process, and its query to the lab."""

from __future__ import annotations

from emu.lab.ipc.codec import Query, message
from emu.lab.ipc.messages import Done
from emu.measure.counter_layout import Layout


@message
class SetUpExporter(Query[Done]):
    """Serve the metrics of these nodes. The open file is a session with the lab."""

    spec: str
    port: int
    addresses: dict[str, str]
    """Node -> the address of its agent."""
    tasks: dict[str, int]
    """Node -> a thread in its agent's namespaces."""


@message
class Counters:
    """Counters in shared memory, as open files: `ports`, and after the first workload `hosts`."""

    ports: Layout
    hosts: Layout | None
    down: tuple[str, ...]
    """Ports without a link."""


@message
class GetCounters(Query[Counters]):
    """Which counters are there now? No other process of the lab is asked."""
