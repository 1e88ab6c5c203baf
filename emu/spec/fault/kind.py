"""The base of all kinds of faults, and of the targets of faults.

target        key              ports at which the core has the fault
LostLinks     cable or switch  one port of each cable that is lost
OnLine        cable            each port that sends into the line
OnPorts       switch or port   the switch's ports, where they have what the fault changes
OnHost        host             the NIC's ports
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeVar

from pydantic import Field, model_validator

from emu.fabric_kind import FabricKind, FlowControl, Framing
from emu.spec.base import Model
from emu.spec.diagnostic import Diagnostic, KeyPath
from emu.spec.notes import note
from emu.spec.parameters import Parameters
from topologies.graph import Port, Topology

if TYPE_CHECKING:
    from emu.spec.fault import Fault
    from emu.spec.scenario import Spec


class FaultKind(Model, ABC):
    """The parameters of a fault. Its class is the kind."""

    key: ClassVar[str]
    """The name of the kind in a spec and, if `core` is empty, in the core."""
    meaning: ClassVar[str]
    """A description of the kind, for the list of kinds."""
    core: ClassVar[str] = ""
    """The name of the kind in the core; empty: the same name."""
    unavailable: ClassVar[Mapping[Framing | FlowControl, str]] = {}
    """A choice of fabrics that cannot have this fault -> why, and what to use instead."""
    already: ClassVar[str] = ""
    """What is said of a place that has the fault, for kinds that a place can have only once."""
    drops_lossless: ClassVar[bool] = False
    """Whether its hits are lossless packets that a switch drops."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The cable, switch, port or host, as the spec names it."""

    @abstractmethod
    def named(self, topology: Topology) -> tuple[str, str, list[str]]:
        """The key that names the place, what a place is, and the names of all places."""

    @abstractmethod
    def ports(self, spec: Spec, topology: Topology) -> Sequence[Port]:
        """The ports at which the core has it; none if the place does not exist."""

    def parameters(self, spec: Spec, port: Port) -> Parameters:
        """The values of its parameters in the core, at one of its ports."""
        return {}

    def applies(self, spec: Spec) -> bool:
        """Whether the fabric has the setting that the fault changes. A variant may inherit a fault
        that does not apply to it; that fault does nothing."""
        return self.why_unavailable(spec.fabric_kind) is None

    def why_unavailable(self, fabric: FabricKind) -> str | None:
        """Why the fabric cannot have it, and what to use instead; None: it can."""
        choices = (fabric.framing, fabric.flow_control)
        return next((why for choice, why in self.unavailable.items() if choice in choices), None)

    def contradictions(self, fault: Fault, at: KeyPath, spec: Spec) -> Iterator[Diagnostic]:
        """The errors of the fault in this spec, in whose fabric the kind is available. `at`: the
        path of the fault."""
        return iter(())


KINDS: dict[str, type[FaultKind]] = {}
"""Every kind, by its key in a spec."""

K = TypeVar("K", bound=type[FaultKind])


def register(kind: K) -> K:
    """Enters a kind into the registry."""
    KINDS[kind.key] = kind
    return kind


class LostLinks(FaultKind):
    """A fault that takes links away."""

    routed_around: ClassVar[bool] = True
    """Whether the link stays down, so that switches find another path where there is one."""

    def times_down(self, begin_ps: int, end_ps: int) -> Iterator[tuple[int, int]]:
        """From when to when the links are down, while the fault lasts."""
        yield begin_ps, end_ps


class _OnCable(FaultKind):
    cable: str = Field(description="The cable, named by one of its ports, e.g. leaf1:spine1.")

    @property
    def place(self) -> str:
        return self.cable

    def named(self, topology: Topology) -> tuple[str, str, list[str]]:
        return "cable", "cable", list(topology.port_named)


class LostLink(LostLinks, _OnCable):
    """A fault that takes one cable's link away."""

    def ports(self, spec: Spec, topology: Topology) -> Sequence[Port]:
        port = topology.port_named.get(self.cable)
        return [] if port is None else [port]


class OnLine(_OnCable):
    """A fault that can be in one direction of a cable."""

    direction: Literal["both", "out", "in"] = Field(
        default="both",
        description="Which packets, seen from the port that `cable` names: out: those that leave "
        "by it; in: those that arrive at it; both.",
        json_schema_extra=note(why="a damaged cable usually hits both directions"),
    )

    def ports(self, spec: Spec, topology: Topology) -> Sequence[Port]:
        near = topology.port_named.get(self.cable)
        if near is None:
            return []
        far = topology.peer[near]
        return {"out": [near], "in": [far], "both": [near, far]}[self.direction]


class OnHost(FaultKind):
    """A fault in a host's NIC."""

    host: str = Field(description="Name of the host.")

    @property
    def place(self) -> str:
        return self.host

    def named(self, topology: Topology) -> tuple[str, str, list[str]]:
        return "host", "host", list(topology.host)

    def ports(self, spec: Spec, topology: Topology) -> Sequence[Port]:
        return topology.ports[self.host] if self.host in topology.host else []


class OnPorts(FaultKind):
    """A fault that changes a setting of a switch's ports: of all, or of one."""

    switch: str | None = Field(default=None, description="Name of the switch: all its ports.")
    port: str | None = Field(default=None, description="One port of a switch, e.g. leaf1:spine1.")

    @property
    def place(self) -> str:
        return self.switch or self.port or ""

    def named(self, topology: Topology) -> tuple[str, str, list[str]]:
        if self.switch is not None:
            return "switch", "switch", list(topology.switch)
        ports = topology.port_named.items()
        names = [name for name, port in ports if port.node in topology.switch]
        return "port", "port of a switch", names

    def ports(self, spec: Spec, topology: Topology) -> Sequence[Port]:
        return [port for port in self._all_ports(topology) if self.is_at(spec, port)]

    def _all_ports(self, topology: Topology) -> Sequence[Port]:
        if self.switch is not None:
            return topology.ports[self.switch] if self.switch in topology.switch else []
        port = topology.port_named.get(self.place)
        return [port] if port is not None and port.node in topology.switch else []

    @abstractmethod
    def is_at(self, spec: Spec, port: Port) -> bool:
        """Whether the port has the setting that the fault changes."""

    @property
    @abstractmethod
    def missing(self) -> str:
        """What a switch without that setting lacks, and what to write instead."""

    @abstractmethod
    def wrong_settings(
        self, at: KeyPath, spec: Spec, ports: Sequence[Port]
    ) -> Iterator[Diagnostic]:
        """The errors at the ports that have the setting. `at`: the path of the parameters."""

    def contradictions(self, fault: Fault, at: KeyPath, spec: Spec) -> Iterator[Diagnostic]:
        topology = spec.topology.build()
        path = (*at, self.key)
        if ports := self.ports(spec, topology):
            yield from self.wrong_settings(path, spec, ports)
        elif self._all_ports(topology):
            yield Diagnostic(
                path,
                f"{self.place} {self.missing}",
                about=(("switches",), ("topology",)),
                idle_if_inherited=True,
            )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        exactly_one(switch=self.switch, port=self.port)
        return self


def exactly_one(**values: object) -> None:
    """Raises ValueError unless exactly one of these keys is given."""
    given = [key for key, value in values.items() if value is not None]
    if len(given) != 1:
        names = " and ".join(given) or "none"
        raise ValueError(f"needs exactly one of {', '.join(values)}; this has {names}")
