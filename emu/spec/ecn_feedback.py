"""Congestion feedback to senders: a receiver's CNPs, and an InfiniBand switch's marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from emu.fabric_kind import Framing
from emu.spec import references
from emu.spec.base import Model
from emu.spec.notes import note
from emu.spec.parameters import Parameters
from emu.spec.quantities import Integer, Time
from emu.spec.queue_discipline import Discipline, QueueDiscipline
from emu.spec.subnet import DATA_VLS
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.scenario import Spec

THRESHOLDS = 16
"""Steps of the congestion threshold between an empty and a full buffer."""
PACKET_SIZE_UNIT = 64
"""Bytes."""


class Cnp(Model):
    """When a receiver sends CNPs. The least interval between two is a parameter of `cc`."""

    per: Literal["qp", "ip-pair", "port"] = Field(
        default="qp",
        description="What the limit of one CNP in an interval applies to: each queue pair, all "
        "queue pairs with the same sender, or the whole port.",
        json_schema_extra=note(
            why="DCQCN limits CNPs per flow, and a flow is a queue pair", source=references.DCQCN
        ),
    )
    delay_ps: Time = Field(
        default=0,
        alias="delay",
        description="Time from a marked packet's arrival to its CNP.",
        json_schema_extra=note(
            why="NICs send CNPs in hardware, at once; raise the delay to model a slower NIC"
        ),
    )


class Fecn(Model, QueueDiscipline):
    """Congestion marking by an InfiniBand switch, with the fields of SwitchCongestionSetting."""

    threshold: Integer = Field(
        default=15,
        ge=1,
        le=15,
        description="The depth at which a virtual lane's queue is congested: 15 means one "
        "sixteenth of the lane's buffer, 1 means fifteen sixteenths.",
        json_schema_extra=note(
            unit="sixteenths",
            why="the most sensitive setting, and the default of NVIDIA's congestion control "
            "manager: marks begin before the credits of a lane run out",
            source=references.MLNX_OFED_CC,
        ),
    )
    marking_rate: Integer = Field(
        default=10,
        ge=0,
        le=0xFFFF,
        description="Packets left unmarked between two marks.",
        json_schema_extra=note(
            unit="packets",
            why="the default of NVIDIA's congestion control manager; a mark on every packet slows "
            "senders far below what the link carries",
            source=references.MLNX_OFED_CC,
        ),
    )
    packet_size: Integer = Field(
        default=8,
        ge=0,
        le=255,
        description="Smaller packets are not marked; in units of 64 bytes.",
        json_schema_extra=note(
            unit="64 bytes",
            why="512 bytes, the default of NVIDIA's congestion control manager: ACKs and small "
            "control packets stay unmarked",
            source=references.MLNX_OFED_CC,
        ),
    )
    victim_mask: Literal["hosts", "all", "none"] = Field(
        default="hosts",
        description="Ports that mark even while they wait for credit themselves: ports to hosts, "
        "all or none.",
        json_schema_extra=note(
            why="a port to a host that waits for credit is the root of the congestion, a port to a "
            "switch may be its victim",
            source=references.IBTA_CC,
        ),
    )

    def discipline(self, spec: Spec, port: Port) -> Discipline | None:
        kind = spec.fabric_kind
        if kind.framing is not Framing.INFINIBAND or not kind.uses_credits:
            return None
        topology, credits = spec.topology.build(), spec.switch(port.node).credits
        to_host = topology.peer[port].node in topology.host
        lanes = range(DATA_VLS)
        parameters: Parameters = {
            "threshold_bytes": [
                credits.buffer_of(vl) * (THRESHOLDS - self.threshold) // THRESHOLDS for vl in lanes
            ],
            "marking_rate": self.marking_rate,
            "packet_bytes": self.packet_size * PACKET_SIZE_UNIT,
            "marks_as_victim": self.victim_mask == "all"
            or (self.victim_mask == "hosts" and to_host),
        }
        return Discipline("fecn", lanes, parameters)
