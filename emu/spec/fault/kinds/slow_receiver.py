"""Slow receiver: a host that receives at a lower rate than its link has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from emu.spec.diagnostic import Diagnostic, KeyPath
from emu.spec.fault.kind import OnHost, register
from emu.spec.headroom import HEADERS
from emu.spec.notes import note
from emu.spec.parameters import Parameters
from emu.spec.quantities import Rate, Size
from emu.units import write_rate, write_size
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.fault import Fault
    from emu.spec.scenario import Spec


@register
class SlowReceiver(OnHost):
    """The host receives at a lower rate than its link has."""

    key: ClassVar[str] = "slow-receiver"
    meaning: ClassVar[str] = "A host that receives packets slowly."
    already: ClassVar[str] = "is a slow receiver already"

    rate_bps: Rate = Field(alias="rate", description="The rate at which it receives.")
    buffer_bytes: Size = Field(
        default=100_000,
        alias="buffer",
        gt=0,
        lt=2**31,
        description="Buffer for the waiting packets of each priority. When it is full, the NIC "
        "pauses a lossless priority and drops packets of a lossy one. On InfiniBand it is the "
        "credit that the NIC gives.",
        json_schema_extra=note(why="some tens of packets, so that the pauses begin soon"),
    )

    def parameters(self, spec: Spec, port: Port) -> Parameters:
        return {"rate_bps": self.rate_bps, "buffer_bytes": self.buffer_bytes}

    def contradictions(self, fault: Fault, at: KeyPath, spec: Spec) -> Iterator[Diagnostic]:
        topology = spec.topology.build()
        for port in self.ports(spec, topology)[:1]:
            link_bps = topology.cable[port].rate_bps
            if self.rate_bps >= link_bps:
                yield Diagnostic(
                    (*at, self.key, "rate"),
                    f"the link of {self.host} is no faster ({write_rate(link_bps)}), so nothing "
                    "would wait; lower rate",
                    about=(("topology",),),
                )
        if self.buffer_bytes < spec.largest_mtu + HEADERS:
            yield Diagnostic(
                (*at, self.key, "buffer"),
                f"{write_size(self.buffer_bytes)} cannot hold one packet of mtu "
                f"{spec.largest_mtu} and its headers; raise it, or lower hosts.nic.mtu",
                about=(("hosts",),),
            )
