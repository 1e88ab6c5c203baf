"""The priority of a packet, and the egress queue of a priority.

    DSCP, or PCP of the VLAN tag ──▶ priority ──▶ egress queue
       `trust` selects one             │            scheduling, ECN
                                       └ ingress buffer, PFC

The maps of the ingress port determine a packet's priority, and those of the egress port its queue.
A NIC takes the map from DSCP to priority from its switch, as with DCBX, so that a pause frame for
a priority stops the packets that the switch assigns to that priority. In tagged frames the NIC
writes the priority into the PCP.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from emu.spec import references
from emu.spec.base import Model
from emu.spec.notes import note
from emu.spec.quantities import Priority, PriorityKey, number_key

DSCPS = 64
PRIORITIES = 8

DscpKey = Annotated[int, BeforeValidator(number_key), Field(ge=0, lt=DSCPS)]
"""A DSCP as the key of a mapping."""


class Classes(Model):
    """The maps from DSCP or PCP to priority, and from priority to queue."""

    trust: Literal["dscp", "pcp"] = Field(
        default="dscp",
        description="The field of a packet that determines its priority: DSCP of the IP header, "
        "or PCP of the VLAN tag, which NICs with `hosts.nic.vlan` add.",
        json_schema_extra=note(
            why="routed RoCEv2 keeps its DSCP across subnets; a VLAN tag may be lost at a router",
            source=references.ROCE_DSCP,
        ),
    )
    dscp: dict[DscpKey, Priority] = Field(
        default={},
        description="Priority by DSCP, e.g. {26: 3, 48: 6}; other DSCPs follow other_dscp.",
    )
    other_dscp: Priority | None = Field(
        default=None,
        description="Priority of DSCPs that dscp does not name; DSCP / 8 unless given.",
        json_schema_extra=note(
            unit="priority",
            why="the upper three bits of a DSCP are the class selector, the former IP precedence",
            source=references.RFC2474,
        ),
    )
    pcp: dict[PriorityKey, Priority] = Field(
        default={},
        description="Priority by PCP, for ports that trust it; the same number unless given.",
    )
    untagged: Priority = Field(
        default=0,
        description="Priority of packets without a VLAN tag where PCP is trusted.",
        json_schema_extra=note(
            unit="priority",
            why="an untagged frame has the default priority 0",
            source=references.DOT1Q,
        ),
    )
    queue: dict[PriorityKey, Priority] = Field(
        default={}, description="Egress queue by priority; the same number unless given."
    )

    def priority_of_dscp(self, dscp: int) -> int:
        other = dscp >> 3 if self.other_dscp is None else self.other_dscp
        return self.dscp.get(dscp, other)

    def priority_of_pcp(self, pcp: int) -> int:
        return self.pcp.get(pcp, pcp)

    @property
    def untagged_priority(self) -> int:
        """The priority of packets without the trusted field."""
        return self.untagged if self.trust == "pcp" else 0

    def priority_of(self, dscp: int, pcp: int | None) -> int:
        """The priority of a packet, from the trusted field. `pcp` is None without a VLAN tag."""
        if self.trust == "dscp":
            return self.priority_of_dscp(dscp)
        return self.untagged_priority if pcp is None else self.priority_of_pcp(pcp)

    def queue_of(self, priority: int) -> int:
        return self.queue.get(priority, priority)

    def dscp_of_priority(self, priority: int) -> int | None:
        """The lowest DSCP that maps to a priority; None: no DSCP does."""
        dscps = (dscp for dscp in range(DSCPS) if self.priority_of_dscp(dscp) == priority)
        return next(dscps, None)

    @property
    def priorities(self) -> set[int]:
        """The priorities to which at least one DSCP maps."""
        return {self.priority_of_dscp(dscp) for dscp in range(DSCPS)}
