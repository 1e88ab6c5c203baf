"""The kinds of fabric, and what differs between them.

A kind is three choices, each independent of the others, and a few defaults:

                  framing       flow control    forwarding
    RoCEv2        Ethernet      pauses          by address
    InfiniBand    InfiniBand    credits         by LID

Code that depends on one of these reads it and never compares names of kinds. What another package
needs for a choice is a table in that package, keyed by the choice: names of counters by framing
(emu.measure.counters), colours by flow control (emu.report.palette). A new kind is one object
here; a new choice is one value here and an entry in each of those tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

FabricName = Literal["roce", "ib"]
Plane = Literal["ovs", "shim"]


class Framing(Enum):
    """What packets look like on a cable."""

    ETHERNET = "ethernet"
    """With an IP header, so that packets have a DSCP and say whether they understand ECN."""
    INFINIBAND = "infiniband"
    """With a service level; switches mark packets with FECN."""


class FlowControl(Enum):
    """What keeps a sender from filling the next buffer."""

    PAUSES = "pauses"
    """Of PFC or 802.3x, where a switch is set up for them."""
    CREDITS = "credits"
    """Always, on each virtual lane."""


class Forwarding(Enum):
    """What a switch looks up."""

    ADDRESS = "address"
    """IP routes, which every switch has by itself."""
    LID = "lid"
    """Tables that a subnet manager computes."""


@dataclass(frozen=True)
class FabricKind:
    name: FabricName
    title: str
    framing: Framing
    flow_control: FlowControl
    forwarding: Forwarding
    planes: tuple[Plane, ...]
    """What can forward its packets; the first of them does so unless a spec says otherwise."""
    cuts_through: bool
    """Whether switches do, unless a spec says otherwise."""

    @property
    def is_ethernet(self) -> bool:
        return self.framing is Framing.ETHERNET

    @property
    def uses_credits(self) -> bool:
        return self.flow_control is FlowControl.CREDITS

    @property
    def has_subnet_manager(self) -> bool:
        return self.forwarding is Forwarding.LID


ROCE = FabricKind(
    name="roce",
    title="RoCEv2",
    framing=Framing.ETHERNET,
    flow_control=FlowControl.PAUSES,
    forwarding=Forwarding.ADDRESS,
    planes=("ovs", "shim"),
    cuts_through=False,
)
INFINIBAND = FabricKind(
    name="ib",
    title="InfiniBand",
    framing=Framing.INFINIBAND,
    flow_control=FlowControl.CREDITS,
    forwarding=Forwarding.LID,
    planes=("shim",),
    cuts_through=True,
)
SCALE_UP = INFINIBAND
"""The links between the GPUs of a server (NVLink) are modelled as such a fabric."""
FABRIC_KINDS: dict[str, FabricKind] = {kind.name: kind for kind in (ROCE, INFINIBAND)}
