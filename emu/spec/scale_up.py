"""`hosts.scale_up`: the links between the GPUs of a server."""

from __future__ import annotations

from pydantic import Field

from emu.spec import references
from emu.spec.base import Model
from emu.spec.notes import note
from emu.spec.quantities import Rate, Size, Time


class ScaleUp(Model):
    """A switch in every server with a link to each of its GPUs (NVLink, NVSwitch).

    The switch is modelled like one of an InfiniBand fabric: credits, packets of up to 4096 bytes,
    cut-through. The default rate of a GPU is NVIDIA's figure for fourth-generation NVLink, 450 GB/s
    in each direction.
    """

    rate_bps: Rate = Field(
        default=3_600_000_000_000,
        alias="rate",
        gt=0,
        description="Rate of all links of a GPU together, in each direction, e.g. 3600Gbit.",
        json_schema_extra=note(
            why="450 GB/s each way: fourth-generation NVLink", source=references.NVLINK
        ),
    )
    latency_ps: Time = Field(
        default=200_000,
        alias="latency",
        description="Latency from one port of the switch to another.",
        json_schema_extra=note(
            why="a round figure for a switch inside of a server; no vendor publishes one"
        ),
    )
    delay_ps: Time = Field(
        default=5_000,
        alias="delay",
        description="One-way delay between a GPU and the switch.",
        json_schema_extra=note(why="about a metre of cable or board"),
    )
    buffer_bytes: Size = Field(
        default=131_072,
        alias="buffer",
        ge=8192,
        le=131_072,
        description="Receive buffer of a port, which limits the credits of the other end. A GPU "
        "sends at most this much in a round trip.",
        json_schema_extra=note(
            why="the most that InfiniBand's credits can advertise, 2048 blocks of 64 bytes",
            source=references.IBTA,
        ),
    )
