"""The models by which a fabric can be run, and what differs between them.

Whatever depends on the model asks for the property that it means, and compares no names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    name: str
    how: str
    """How it works, for the help of commands."""
    has_packets: bool
    """It knows queues, pauses, marks, losses and counters, and can capture."""


PACKETS = Model("packets", how="every packet, queue and pause", has_packets=True)
FLOW = Model(
    "flow",
    how="max-min fair rates without packets, for large workloads",
    has_packets=False,
)
MODELS: dict[str, Model] = {model.name: model for model in (PACKETS, FLOW)}
