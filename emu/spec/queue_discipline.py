"""The queue disciplines of switch ports: what happens to a packet that is about to join a queue.

    settings of a port ──disciplines_of──▶ Discipline ──emu.bindings──▶ queue_<name>.c in the core

A setting of switch ports that stands for a discipline is a `QueueDiscipline`. The other disciplines
follow from the kind of fabric: a queue without credits drops when it is full, and InfiniBand's
management lane holds a few packets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from emu.fabric_kind import Framing
from emu.spec.parameters import Parameters
from emu.spec.subnet import MANAGEMENT_VL
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.scenario import Spec

QUEUES = 16
"""Queues of an egress port in the core: 8 Ethernet priorities, or 16 virtual lanes."""


@dataclass(frozen=True)
class Discipline:
    """A discipline of some queues of a port."""

    name: str
    """As the core knows it."""
    queues: Sequence[int]
    parameters: Parameters
    may_be_kernels: bool = False
    """Whether the kernel may do it in a lab (eBPF or RED), and not the core."""


class QueueDiscipline(ABC):
    """A section of the settings of switch ports that stands for a discipline."""

    @abstractmethod
    def discipline(self, spec: Spec, port: Port) -> Discipline | None:
        """The discipline of a switch port; None: its kind of fabric does not have it."""


MANAGEMENT_LIMIT = Discipline("packet-limit", (MANAGEMENT_VL,), {"packets": 16})
"""The management lane has no credits and little room."""


def disciplines_of(spec: Spec, port: Port) -> Iterator[Discipline]:
    """The disciplines of a switch port's queues."""
    settings = spec.port(port)
    if not spec.fabric_kind.uses_credits:
        limit, alpha = settings.queue_limit_bytes or 0, round(settings.alpha * 1024)
        yield Discipline("tail-drop", range(QUEUES), {"bytes": limit, "alpha_1024": alpha})
    if spec.fabric_kind.framing is Framing.INFINIBAND:
        yield MANAGEMENT_LIMIT
    for _, section in settings:
        if isinstance(section, QueueDiscipline):
            discipline = section.discipline(spec, port)
            if discipline is not None:
                yield discipline
