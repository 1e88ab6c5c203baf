"""The `topology:` section: a kind of fabric and its size, turned into a graph of cables.

`kind` determines the other keys, so that errors refer to the keys of that kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import replace
from functools import cached_property, lru_cache
from math import prod
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from emu.limits import MAX_HOSTS, MAX_SWITCH_PORTS
from emu.spec.base import Model
from emu.spec.notes import note
from emu.spec.quantities import Integer, Length, Rate, Time, named_like
from topologies.dumbbell import dumbbell
from topologies.fat_tree import fat_tree
from topologies.graph import Builder, Cable, Topology, Wire
from topologies.leaf_spine import leaf_spine
from topologies.parking_lot import parking_lot
from topologies.rail import rail
from topologies.ring import ring
from topologies.torus import torus

NodeName = Annotated[
    str, named_like("[A-Za-z][A-Za-z0-9_]{0,8}", "a letter and up to 8 letters, digits or _")
]
"""Interfaces are called `<name>-ethN`, and Linux allows them 15 characters."""


class Link(Model):
    """A cable. Rate and delay apply to each direction."""

    rate_bps: Rate = Field(
        default=100_000_000_000,
        alias="rate",
        description="Rate of the link in each direction, e.g. 100Gbit.",
        json_schema_extra=note(
            why="a common rate of RoCE fabrics, and one at which times are easy to check: 4096 "
            "bytes take 334 ns"
        ),
    )
    length_ps: Length | None = Field(
        default=None,
        alias="length",
        description="Length of the cable, e.g. 5m; light needs 5 ns a metre. 5 m unless length or "
        "delay is given.",
    )
    given_delay_ps: Time | None = Field(
        default=None,
        alias="delay",
        description="One-way delay of the cable, e.g. 500ns; instead of length.",
    )

    @property
    def delay_ps(self) -> int:
        """The one-way delay, given as a delay or a length; that of 5 m by default."""
        if self.given_delay_ps is not None:
            return self.given_delay_ps
        return 25_000 if self.length_ps is None else self.length_ps

    @property
    def wire(self) -> Wire:
        return Wire(self.rate_bps, self.delay_ps)

    @model_validator(mode="after")
    def _length_or_delay(self) -> Self:
        if self.length_ps is not None and self.given_delay_ps is not None:
            raise ValueError("length and delay both determine the delay; keep one of them")
        return self


class Links(Model):
    """The two kinds of cable in a fabric with switches in tiers."""

    host: Link = Field(default=Link(), description="Cables between a host and its switch.")
    fabric: Link = Field(default=Link(), description="Cables between switches.")

    @property
    def for_builders(self) -> dict[str, Wire]:
        """The cables as arguments of the functions in `topologies`."""
        return {"host_wire": self.host.wire, "fabric_wire": self.fabric.wire}


class OneCable(Link):
    """Settings that differ for one cable. Keys that are not given keep their values."""

    cable: str = Field(description="The cable, named by one of its ports, e.g. leaf1:spine2.")

    def changed(self, cable: Cable) -> Cable:
        given = self.model_fields_set
        rate_bps = self.rate_bps if "rate_bps" in given else cable.rate_bps
        has_delay = given & {"length_ps", "given_delay_ps"}
        return replace(
            cable, rate_bps=rate_bps, delay_ps=self.delay_ps if has_delay else cable.delay_ps
        )


class Kind(Model, ABC):
    """The interface of all kinds of topology."""

    cables: tuple[OneCable, ...] = Field(
        default=(), description="Single cables that differ, e.g. [{cable: leaf1:h1, rate: 25Gbit}]."
    )

    @property
    @abstractmethod
    def host_count(self) -> int:
        """The number of hosts, without building the graph."""

    @property
    @abstractmethod
    def most_ports(self) -> int:
        """The number of ports of the largest switch, without building the graph."""

    @property
    def can_be_built(self) -> bool:
        """Whether `build` succeeds; if not, a rule reports the reason."""
        return self.host_count <= MAX_HOSTS and self.most_ports <= MAX_SWITCH_PORTS

    @abstractmethod
    def lay_out(self) -> Topology:
        """Builds the graph."""

    def build(self) -> Topology:
        """The graph, built once."""
        return self._graph

    @cached_property
    def _graph(self) -> Topology:
        """The hash, computed once: it includes every cable. Variants with equal topologies share a
        graph."""
        return _built(self)


class LeafSpine(Kind):
    """Two tiers: every leaf has one cable to every spine, every host has one cable to its leaf."""

    kind: Literal["leaf-spine"] = Field(description="Kind of topology.")
    spines: Integer = Field(
        ge=1,
        le=MAX_SWITCH_PORTS,
        description="Number of spine switches: spine1, spine2, ...",
        json_schema_extra=note(unit="switches"),
    )
    leaves: Integer = Field(
        ge=1,
        le=MAX_SWITCH_PORTS,
        description="Number of leaf switches: leaf1, leaf2, ...",
        json_schema_extra=note(unit="switches"),
    )
    hosts_per_leaf: Integer = Field(
        ge=1,
        le=MAX_SWITCH_PORTS,
        description="Hosts on each leaf: h1, h2, ... on leaf1, then on leaf2, ...",
        json_schema_extra=note(unit="hosts"),
    )
    links: Links = Field(default=Links(), description="Rate and delay of the cables.")

    @property
    def host_count(self) -> int:
        return self.leaves * self.hosts_per_leaf

    @property
    def most_ports(self) -> int:
        return max(self.hosts_per_leaf + self.spines, self.leaves)

    def lay_out(self) -> Topology:
        return leaf_spine(
            self.spines,
            self.leaves,
            self.hosts_per_leaf,
            **self.links.for_builders,
        )


class Dumbbell(Kind):
    """Two switches, `left` and `right`, one cable between them, hosts on both sides."""

    kind: Literal["dumbbell"] = Field(description="Kind of topology.")
    hosts_per_side: Integer = Field(
        ge=1,
        le=MAX_SWITCH_PORTS,
        description="Hosts on each switch: h1, h2, ... left, then the same right.",
        json_schema_extra=note(unit="hosts"),
    )
    links: Links = Field(default=Links(), description="Rate and delay of the cables.")

    @property
    def host_count(self) -> int:
        return 2 * self.hosts_per_side

    @property
    def most_ports(self) -> int:
        return self.hosts_per_side + 1

    def lay_out(self) -> Topology:
        return dumbbell(
            self.hosts_per_side,
            **self.links.for_builders,
        )


class FatTreeLinks(Model):
    """The three kinds of cable in a fat tree; by default all are equal."""

    host: Link = Field(default=Link(), description="Cables between a host and its switch.")
    given_edge: Link | None = Field(
        default=None,
        alias="edge",
        description="Cables between edge and aggregation switches; like `host` unless given.",
    )
    given_core: Link | None = Field(
        default=None,
        alias="core",
        description="Cables between aggregation and core switches; like `edge` unless given.",
    )

    @property
    def edge(self) -> Link:
        return self.given_edge or self.host

    @property
    def core(self) -> Link:
        return self.given_core or self.edge


def _even(k: int) -> int:
    if k % 2:
        raise ValueError(
            f"{k} is odd, but half of a switch's ports lead down and half up; take {k + 1}"
        )
    return k


class FatTree(Kind):
    """Three tiers of equal switches with k ports: k^3/4 hosts that can all send at full rate."""

    kind: Literal["fat-tree"] = Field(description="Kind of topology.")
    k: Annotated[Integer, AfterValidator(_even)] = Field(
        ge=2,
        le=50,
        description="Ports of each switch, an even number: 4 makes 16 hosts, 8 makes 128, 16 "
        "makes 1024, 32 makes 8192, 40 makes 16000. Switches are edge1, ..., agg1, ... and "
        "core1, ...",
        json_schema_extra=note(unit="ports"),
    )
    links: FatTreeLinks = Field(default=FatTreeLinks(), description="Rate and delay of the cables.")

    @property
    def host_count(self) -> int:
        return self.k**3 // 4

    @property
    def most_ports(self) -> int:
        return self.k

    def lay_out(self) -> Topology:
        links = self.links
        return fat_tree(
            self.k,
            host_wire=links.host.wire,
            edge_wire=links.edge.wire,
            core_wire=links.core.wire,
        )


class Ring(Kind):
    """Switches in a ring, each with its own hosts."""

    kind: Literal["ring"] = Field(description="Kind of topology.")
    switches: Integer = Field(
        ge=3,
        le=MAX_SWITCH_PORTS,
        description="Number of switches: ring1, ring2, ... and back to ring1.",
        json_schema_extra=note(unit="switches"),
    )
    hosts_per_switch: Integer = Field(
        ge=1,
        le=MAX_SWITCH_PORTS,
        description="Hosts on each switch: h1, h2, ... on ring1, then on ring2, ...",
        json_schema_extra=note(unit="hosts"),
    )
    links: Links = Field(default=Links(), description="Rate and delay of the cables.")

    @property
    def host_count(self) -> int:
        return self.switches * self.hosts_per_switch

    @property
    def most_ports(self) -> int:
        return self.hosts_per_switch + 2

    def lay_out(self) -> Topology:
        return ring(
            self.switches,
            self.hosts_per_switch,
            **self.links.for_builders,
        )


class Torus(Kind):
    """Switches in a grid whose rows and columns are rings, each with its own hosts."""

    kind: Literal["torus"] = Field(description="Kind of topology.")
    dimensions: tuple[Annotated[Integer, Field(ge=3, le=16)], ...] = Field(
        min_length=2,
        max_length=3,
        description="Switches along each dimension, e.g. [3, 4]: t1_1, t1_2, ... t3_4.",
        json_schema_extra=note(unit="switches"),
    )
    hosts_per_switch: Integer = Field(
        ge=1,
        le=MAX_SWITCH_PORTS,
        description="Hosts on each switch: h1, h2, ... on t1_1, then on t1_2, ...",
        json_schema_extra=note(unit="hosts"),
    )
    links: Links = Field(default=Links(), description="Rate and delay of the cables.")

    @property
    def host_count(self) -> int:
        return prod(self.dimensions) * self.hosts_per_switch

    @property
    def most_ports(self) -> int:
        return self.hosts_per_switch + 2 * len(self.dimensions)

    def lay_out(self) -> Topology:
        return torus(
            self.dimensions,
            self.hosts_per_switch,
            **self.links.for_builders,
        )


class ParkingLot(Kind):
    """Switches in a row, each with its own hosts."""

    kind: Literal["parking-lot"] = Field(description="Kind of topology.")
    switches: Integer = Field(
        ge=2,
        le=MAX_SWITCH_PORTS,
        description="Number of switches: lot1, lot2, ...",
        json_schema_extra=note(unit="switches"),
    )
    hosts_per_switch: Integer = Field(
        ge=1,
        le=MAX_SWITCH_PORTS,
        description="Hosts on each switch: h1, h2, ... on lot1, then on lot2, ...",
        json_schema_extra=note(unit="hosts"),
    )
    links: Links = Field(default=Links(), description="Rate and delay of the cables.")

    @property
    def host_count(self) -> int:
        return self.switches * self.hosts_per_switch

    @property
    def most_ports(self) -> int:
        return self.hosts_per_switch + 2

    def lay_out(self) -> Topology:
        return parking_lot(
            self.switches,
            self.hosts_per_switch,
            **self.links.for_builders,
        )


class Rail(Kind):
    """Servers with a NIC for each GPU, and a leaf switch for each position of a NIC in its
    server."""

    kind: Literal["rail"] = Field(description="Kind of topology.")
    servers: Integer = Field(
        ge=1,
        le=MAX_SWITCH_PORTS,
        description="Number of servers.",
        json_schema_extra=note(unit="servers"),
    )
    rails: Integer = Field(
        ge=1,
        le=MAX_SWITCH_PORTS,
        description="NICs of a server, and leaf switches: rail1, rail2, ... Each NIC is a host: "
        "with 4 rails, server 1 has h1 to h4, server 2 h5 to h8; h1 and h5 are on rail1.",
        json_schema_extra=note(unit="NICs"),
    )
    spines: Integer = Field(
        ge=1,
        le=MAX_SWITCH_PORTS,
        description="Number of spine switches: spine1, spine2, ...",
        json_schema_extra=note(unit="switches"),
    )
    links: Links = Field(default=Links(), description="Rate and delay of the cables.")

    @property
    def host_count(self) -> int:
        return self.servers * self.rails

    @property
    def most_ports(self) -> int:
        return max(self.servers + self.spines, self.rails)

    def lay_out(self) -> Topology:
        return rail(
            self.servers,
            self.rails,
            self.spines,
            **self.links.for_builders,
        )


class GraphLink(Link):
    """A cable of a graph: the two nodes that it joins, its rate and its delay."""

    between: tuple[NodeName, NodeName] = Field(
        description="The two nodes that the cable joins, e.g. [leaf1, h1]."
    )


class Graph(Kind):
    """Any fabric: its hosts, its switches and every cable, named one by one.

    Hosts and switches are numbered by name, h2 before h10, independent of their order in the file.
    A node's ports are numbered by the names of their neighbours; ports to the same neighbour by
    rate and delay.
    """

    kind: Literal["graph"] = Field(description="Kind of topology.")
    hosts: tuple[NodeName, ...] = Field(
        min_length=1, description="Names of the hosts; each has exactly one cable."
    )
    switches: tuple[NodeName, ...] = Field(
        min_length=1,
        description="Names of the switches. A switch's role is its name without digits at the "
        "end: leaf1 and leaf2 have the role leaf.",
    )
    links: tuple[GraphLink, ...] = Field(min_length=1, description="The cables.")

    @property
    def host_count(self) -> int:
        return len(self.hosts)

    @property
    def most_ports(self) -> int:
        return max(Counter(name for link in self.links for name in link.between).values())

    @property
    def can_be_built(self) -> bool:
        joined = {name for link in self.links for name in link.between}
        return super().can_be_built and joined <= {*self.hosts, *self.switches}

    def lay_out(self) -> Topology:
        builder = Builder()
        for name in sorted(self.switches, key=_by_number):
            builder.add_switch(name, role=name.rstrip("0123456789"))
        for name in sorted(self.hosts, key=_by_number):
            builder.add_host(name)
        for a, b, wire in sorted(map(_ordered, self.links)):
            builder.add_cable(a[-1], b[-1], wire)
        return builder.topology()


Ordered = tuple[str, int, str]


def _by_number(name: str) -> Ordered:
    """A sort key for names: the letters, the number, the whole name. h2 precedes h10."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0), name


def _ordered(link: GraphLink) -> tuple[Ordered, Ordered, Wire]:
    """A sort key for cables: the names of both ends, then rate and delay."""
    a, b = sorted(map(_by_number, link.between))
    return a, b, link.wire


TopologySpec = Annotated[
    LeafSpine | FatTree | Rail | Dumbbell | ParkingLot | Ring | Torus | Graph,
    Field(discriminator="kind"),
]


@lru_cache(maxsize=32)
def _built(kind: Kind) -> Topology:
    topology = kind.lay_out()
    cables = {cable: cable for cable in topology.cables}
    for one in kind.cables:
        port = topology.port_named.get(one.cable)
        if port is not None:  # otherwise a rule reports it
            cables[topology.cable[port]] = one.changed(topology.cable[port])
    return Topology(topology.hosts, topology.switches, tuple(cables.values()))
