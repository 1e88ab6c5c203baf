"""A whole spec: fabric, hosts, workload, and what to look at and to check."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from emu.fabric_kind import FABRIC_KINDS, FabricKind, FabricName, Plane
from emu.spec.about import About
from emu.spec.base import Model
from emu.spec.checks.check import Check
from emu.spec.classes import Classes
from emu.spec.fault import Fault
from emu.spec.formula import expected_numbers
from emu.spec.headroom import reserved_of
from emu.spec.host import HostDefaults, HostSpec
from emu.spec.latency import latency_of
from emu.spec.merge import inherit, overlay
from emu.spec.notes import note
from emu.spec.presets import DSCPS, PRESETS
from emu.spec.quantities import (
    AUTO,
    AUTO_WRITTEN,
    Integer,
    PortNames,
    Slowdown,
    Time,
    named_like,
)
from emu.spec.subnet import IPOIB_HEADER_BYTES, SubnetSpec
from emu.spec.switch import SwitchDefaults, SwitchSpec
from emu.spec.thresholds import PortScale, limit_of, with_thresholds
from emu.spec.topology import TopologySpec
from emu.spec.traffic import TrafficSpec
from emu.spec.traffic.entry import TrafficEntry
from topologies.graph import Port, Switch, Topology, Wire
from topologies.scale_up import scale_up
from traffic.graph import Flow, OperationGraph, together

SpecName = Annotated[
    str, named_like("[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", "up to 64 letters, digits, -, _ and .")
]
"""Files and folders of a run are called by it."""

Changes = Annotated[
    dict[str, Any],
    BeforeValidator(lambda value: {} if value is None else value),
    WithJsonSchema({"type": ["object", "null"]}),
]
"""What a variant has different; nothing at all is also an answer."""


class Spec(Model):
    """A scenario: one fabric with its workload, reproducible from its text and seed."""

    name: SpecName = Field(description="Name of the scenario; the file's own name unless given.")
    about: About | None = Field(
        default=None, description="What the spec is there to show, for pages that list results."
    )
    fabric: FabricName = Field(
        default="roce",
        description="roce: RoCEv2 over Ethernet. ib: InfiniBand.",
        json_schema_extra=note(why="RoCEv2 is the fabric whose settings need most care"),
    )
    plane: Literal["auto", "ovs", "shim"] = Field(
        default="auto",
        description="What forwards: Open vSwitch or the emulator's own switches (always on "
        "InfiniBand). auto takes ovs for roce and shim for ib.",
        json_schema_extra=note(
            why="Open vSwitch forwards where it can, as it is what a real Linux switch would use"
        ),
    )
    seed: Integer = Field(
        default=1,
        ge=0,
        lt=2**63,
        description="Seed of everything random; same seed, same choices.",
        json_schema_extra=note(unit="a number", why="any seed will do; 1 is easy to remember"),
    )
    slowdown: Slowdown = Field(
        default="auto",
        description="How many times slower than real the fabric runs; auto takes the least that "
        "this machine can honour.",
        json_schema_extra=note(
            unit="times slower",
            why="what a machine can keep up with depends on the machine, so the machine is "
            "measured",
        ),
    )
    payload: Literal["real", "elided"] = Field(
        default="real",
        description="real: every byte of a message is carried and compared. elided: packets have "
        "only headers and a length, for large fabrics on the virtual clock.",
        json_schema_extra=note(why="data that really moves can be compared at the receiver"),
    )
    time_limit_ps: Time = Field(
        default=100_000_000_000,
        alias="time_limit",
        gt=0,
        description="Emulated time after which a run ends, finished or not.",
        json_schema_extra=note(
            why="long beside any single workload here, so that it ends runs that would never end"
        ),
    )
    sample_interval_ps: Annotated[Time | None, AUTO, AUTO_WRITTEN] = Field(
        default=None,
        alias="sample_interval",
        ge=10_000,
        description="Time between two samples of queues, rates and waiting, e.g. 100ns. auto "
        "begins with 500 ns and doubles it whenever 4096 samples are full. A given interval is "
        "kept as long as all samples fit in 128 MB.",
        json_schema_extra=note(
            why="a packet of 4 KB takes 330 ns at 100 Gbit/s, and charts show fewer points"
        ),
    )
    topology: TopologySpec = Field(description="Hosts, switches and cables.")
    switches: SwitchDefaults = Field(default=SwitchDefaults(), description="What the switches do.")
    hosts: HostDefaults = Field(default=HostDefaults(), description="What the hosts' NICs do.")
    subnet: SubnetSpec = Field(
        default=SubnetSpec(), description="Settings of the InfiniBand subnet manager."
    )
    traffic: tuple[TrafficSpec, ...] = Field(default=(), description="Who sends how much to whom.")
    faults: tuple[Fault, ...] = Field(
        default=(), description="What goes wrong, where, from when on and for how long."
    )
    capture: PortNames = Field(
        default=(),
        description="Ports whose link is captured, e.g. leaf1:h1 (leaf1's port to h1), or all; "
        "none unless given.",
    )
    verify: tuple[Check, ...] = Field(default=(), description="Checks that a run must pass.")
    unfinished: Literal["fail", "allow"] = Field(
        default="fail",
        description="How `emu compare` treats a variant with unfinished flows. fail: it exits "
        "with 1, as if every variant had the check `completed: all`. allow: only other checks "
        "decide.",
        json_schema_extra=note(
            why="a fabric on which a workload does not end cannot be compared with one on which it "
            "does"
        ),
    )

    @property
    def with_completion(self) -> Spec:
        """The same, with the check that every flow completes, unless unfinished ones are
        allowed."""
        if self.unfinished == "allow" or any(check.completed for check in self.verify):
            return self
        checks = (*self.verify, Check(completed="all"))
        return self.model_copy(update={"verify": checks})

    compare: dict[SpecName, Changes] = Field(
        default={},
        description="Variants for `emu compare`: a name and the keys that differ. A variant "
        "has only the checks it brings itself.",
    )

    @field_validator("traffic")
    @classmethod
    def _hosts_are_placed(
        cls, traffic: tuple[TrafficSpec, ...], info: ValidationInfo
    ) -> tuple[TrafficSpec, ...]:
        topology = info.data.get("topology")
        if topology is None or not topology.can_be_built:
            return traffic
        hosts = info.data.get("hosts")
        gpus = hosts.gpus if hosts else None
        return tuple(entry.placed(topology.build(), gpus) for entry in traffic)

    @field_validator("verify", mode="before")
    @classmethod
    def _formulas_are_worked_out(cls, checks: Any, info: ValidationInfo) -> Any:
        flows = {entry.name: entry.flow_count for entry in info.data.get("traffic", ())}
        return expected_numbers(checks, flows)

    def switch(self, name: str) -> SwitchSpec:
        """A switch as it is in the end: all switches, its role, itself. KeyError if unknown."""
        if name not in self._switches:
            said = self.given_switch(name)
            latency_ps, _ = self.switch_latency(name)
            self._switches[name] = said.model_copy(update={"latency_given": latency_ps})
        return self._switches[name]

    def given_switch(self, name: str) -> SwitchSpec:
        """The same, but what is not given is not worked out."""
        return self._merged_switches[name]

    @cached_property
    def _switches(self) -> dict[str, SwitchSpec]:
        return {}

    @property
    def fabric_kind(self) -> FabricKind:
        return FABRIC_KINDS[self.fabric]

    @property
    def plane_in_use(self) -> Plane:
        """What forwards packets: Open vSwitch or the emulator's own switches."""
        planes = self.fabric_kind.planes
        return self.plane if self.plane in planes else planes[0]

    def switch_latency(self, name: str) -> tuple[int, str]:
        """Picoseconds, and why."""
        given_ps = self.given_switch(name).latency_given
        if given_ps is not None:
            return given_ps, "given"
        topology = self.topology.build()
        rates = (topology.cable[port].rate_bps for port in topology.ports[name])
        return latency_of(self.fabric_kind.framing, max(rates, default=0))

    def cuts_through(self, name: str) -> bool:
        """Whether a switch begins to send a packet before all of it has arrived."""
        switching = self.switch(name).switching
        if switching == "auto":
            return self.fabric_kind.cuts_through
        return switching == "cut-through"

    @cached_property
    def _merged_switches(self) -> dict[str, SwitchSpec]:
        """Switches of the same layers share what comes of them."""
        merged: dict[tuple[int, ...], SwitchSpec] = {}
        result = {}
        for switch in self.topology.build().switches:
            layers = self._layers(switch)
            key = tuple(map(id, layers))
            if key not in merged:
                merged[key] = _layered(layers)
            result[switch.name] = merged[key]
        return result

    def _layers(self, switch: Switch) -> list[SwitchSpec]:
        said = self.switches
        roles = self.topology.build().roles[switch.name]
        layers = (said, *map(said.roles.get, roles), said.nodes.get(switch.name))
        return [layer for layer in layers if layer is not None]

    def port(self, port: Port) -> SwitchSpec:
        """A switch's port as it is in the end: its switch, itself, and what was not given is
        worked out (`thresholds`; `derived` tells it with the reasons)."""
        if port not in self._ports:
            self._ports[port] = self._complete(port)
        return self._ports[port]

    def given_port(self, port: Port) -> SwitchSpec:
        """The same, but what is not given is not worked out."""
        return self._merged_ports[port]

    @cached_property
    def _ports(self) -> dict[Port, SwitchSpec]:
        return {}

    def _complete(self, port: Port) -> SwitchSpec:
        said, switch = self.given_port(port), self.switch(port.node)
        if said.ecn is None and said is self.given_switch(port.node):
            return switch
        found: dict[str, Any] = {"latency_given": switch.latency_ps}
        if said.ecn is not None:
            found["ecn"] = with_thresholds(said.ecn, partial(self.curve_scale, port))
        return said.model_copy(update=found)

    def curve_scale(self, port: Port, queue: int | None) -> PortScale:
        """What the curve of a queue follows from that has its own, or that of all others (None)."""
        return self.port_scale(port, lossless=self.given_port(port).has_lossless(queue))

    def port_scale(self, port: Port, *, lossless: bool = True) -> PortScale:
        """What the thresholds of a port follow from; of its lossless priorities, if it has any."""
        cable, said = self.topology.build().cable[port], self.given_port(port)
        return PortScale(
            rate_bps=cable.rate_bps,
            delay_ps=cable.delay_ps,
            frame_bytes=self.largest_frame_bytes,
            limit=limit_of(said, self.shared_pool(port.node), lossless=lossless),
        )

    def shared_pool(self, switch: str) -> int:
        """Bytes of a switch's buffer that its ports share."""
        if switch not in self._pools:
            buffer_bytes = self.given_switch(switch).buffer_bytes
            self._pools[switch] = buffer_bytes - reserved_of(self, switch)
        return self._pools[switch]

    @cached_property
    def _pools(self) -> dict[str, int]:
        return {}

    @cached_property
    def _merged_ports(self) -> dict[Port, SwitchSpec]:
        topology = self.topology.build()
        merged = {}
        for switch, spec in self._merged_switches.items():
            for port in topology.ports[switch]:
                own = spec.ports.get(topology.port_name[port].partition(":")[2])
                merged[port] = inherit(spec, own) if own else spec
        return merged

    @property
    def marks_ce(self) -> bool:
        """Whether any port marks CE."""
        return self.fabric_kind.is_ethernet and any(
            port.ecn is not None for port in self._merged_ports.values()
        )

    def classes_of(self, host: str) -> Classes:
        """The classes of the switch that a host is plugged into, which its NIC takes over."""
        topology = self.topology.build()
        return self.switch(topology.peer[topology.ports[host][0]].node).classes

    def dscp(self, host: str, priority: int | None) -> int:
        """DSCP of a host's packets: its NIC's, or the lowest of the priority if one is asked for.

        0 where no DSCP rides on that priority (`rules` refuses it).
        """
        if priority is None:
            return self.host(host).nic.dscp
        return self.classes_of(host).dscp_of_priority(priority) or 0

    def priority(self, host: str, asked: int | None) -> int:
        """The priority that they ride on."""
        return self.classes_of(host).priority_of_dscp(self.dscp(host, asked))

    def cnp_priority(self, host: str) -> int:
        """The one on which its switch has a host's CNPs that answer data of the NIC's DSCP."""
        nic, classes = self.host(host).nic, self.classes_of(host)
        control = nic.control(nic.cc)
        dscp = control.dscp_of_cnps(nic.cnp_dscp, nic.dscp)
        own = control.pcp_of_cnps
        pcp = classes.priority_of_dscp(dscp) if own is None else own
        return classes.priority_of(dscp, None if nic.vlan is None else pcp)

    def host(self, name: str) -> HostSpec:
        """A host as it is in the end: all hosts, itself, and DSCPs of its switch's preset."""
        said = self._merged_hosts.get(name, self._any_host)
        return said if name not in self._preset_dscps else self._with_dscps(name, said)

    @cached_property
    def _preset_dscps(self) -> dict[str, tuple[int, int]]:
        """By host, where its switch has a preset that brings them."""
        if not any(switch.preset in DSCPS for switch in self._merged_switches.values()):
            return {}
        topology = self.topology.build()
        leaves = {host: topology.peer[topology.ports[host][0]].node for host in topology.host}
        return {
            host: DSCPS[preset]
            for host, leaf in leaves.items()
            if leaf in topology.switch and (preset := self.given_switch(leaf).preset) in DSCPS
        }

    def dscps_of_preset(self, host: str) -> dict[str, int]:
        """Keys of its NIC that the host does not name and its switch's preset does."""
        said = self._merged_hosts.get(host, self._any_host).nic.model_fields_set
        own = dict(zip(("dscp", "cnp_dscp"), self._preset_dscps.get(host, ()), strict=False))
        return {key: dscp for key, dscp in own.items() if key not in said}

    def _with_dscps(self, name: str, said: HostSpec) -> HostSpec:
        if name not in self._hosts_of_presets:
            nic = said.nic.model_copy(update=self.dscps_of_preset(name))
            self._hosts_of_presets[name] = said.model_copy(update={"nic": nic})
        return self._hosts_of_presets[name]

    @cached_property
    def _hosts_of_presets(self) -> dict[str, HostSpec]:
        return {}

    @cached_property
    def _any_host(self) -> HostSpec:
        return inherit(HostSpec(), self.hosts)

    @cached_property
    def _merged_hosts(self) -> dict[str, HostSpec]:
        """Those that differ from the others."""
        return {name: inherit(self._any_host, own) for name, own in self.hosts.nodes.items()}

    @cached_property
    def largest_mtu(self) -> int:
        """Payload of the largest packet that any host may send."""
        return max(self.host(name).nic.mtu for name in self.topology.build().host)

    @cached_property
    def largest_frame_bytes(self) -> int:
        """What the longest packet of any host keeps a cable busy with, on Ethernet."""
        return max(self.host(name).nic.largest_frame_bytes for name in self.topology.build().host)

    @cached_property
    def scale_up(self) -> Topology | None:
        """The fabric inside of servers, with the same hosts; None where each stands alone."""
        gpus, links = self.hosts.gpus, self.hosts.scale_up
        if gpus is None:
            return None
        hosts = self.topology.build().hosts
        return scale_up(hosts, gpus, Wire(links.rate_bps, links.delay_ps))

    def in_one_server(self, one: str, other: str) -> bool:
        """Whether two hosts talk to each other without a NIC."""
        if self.scale_up is None or one == other:
            return False
        switches = (
            {self.scale_up.peer[port].node for port in self.scale_up.ports[host]}
            for host in (one, other)
        )
        return bool(set.intersection(*switches))

    @property
    def ip_mtu(self) -> int:
        """Bytes of the largest IP packet on InfiniBand: IPoIB puts 4 bytes before each."""
        mtus = (self.host(host.name).nic.mtu for host in self.topology.build().hosts)
        return min(self.subnet.ipoib_mtu, *mtus) - IPOIB_HEADER_BYTES

    def by_tcp(self, entry: TrafficEntry) -> bool:
        """Whether the hosts' kernels carry it, and not their NICs."""
        return (entry.stack or self.hosts.stack) == "tcp"

    def workload(self) -> OperationGraph:
        """All traffic entries that are RDMA, side by side. It is put together once."""
        return self._workload

    @cached_property
    def _workload(self) -> OperationGraph:
        return together(entry.graph(self.seed) for entry in self.traffic if not self.by_tcp(entry))

    def streams(self) -> OperationGraph:
        """Those that are TCP: of each flow the sum of its messages is one stream."""
        return together(entry.graph(self.seed) for entry in self.traffic if self.by_tcp(entry))

    def fabric_flows(self, workload: OperationGraph | None = None) -> tuple[Flow, ...]:
        """Those of the workload, this spec's, that leave their server and cross the fabric."""
        flows = (workload or self.workload()).message_flows
        return tuple(flow for flow in flows if not self.in_one_server(flow.src, flow.dst))

    def variants(self) -> dict[str, Spec]:
        """The specs that `compare:` names, in its order."""
        base = self.to_mapping()
        return {
            name: Spec.model_validate(variant(base, changes))
            for name, changes in self.compare.items()
        }

    def to_mapping(self) -> dict[str, Any]:
        """The keys that were given, as they would be written in a file."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    @cached_property
    def written(self) -> dict[str, Any]:
        """The same, put together once."""
        return self.to_mapping()

    def to_json(self) -> str:
        """A spec again, with settings and variants applied; `spec_from_json` reads it back."""
        return self.model_dump_json(by_alias=True, exclude_unset=True)


def _layered(layers: Iterable[SwitchSpec]) -> SwitchSpec:
    """Layers, each on top of those before it and on its own preset, which stands in place of
    a farther one: of that nothing is left in the sections that the nearer one has, and nothing
    at all where the nearer is `none`."""
    told = keys_alone = SwitchSpec()
    for layer in layers:
        preset = PRESETS.get(layer.preset)
        if preset is None and "preset" in layer.model_fields_set:
            told = keys_alone
        elif preset is not None:
            anew = inherit(keys_alone, preset)
            sections = {name: getattr(anew, name) for name in preset.model_fields_set}
            told = told.model_copy(update=sections)
        told, keys_alone = inherit(told, layer), inherit(keys_alone, layer)
    return told


def variant(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A variant's mapping. The base's checks speak about the base, so they stay behind."""
    shared = {key: value for key, value in base.items() if key not in ("compare", "verify")}
    return overlay(shared, changes)


def spec_from_json(text: str) -> Spec:
    """What `Spec.to_json` wrote."""
    return Spec.model_validate_json(text)
