"""A whole spec: fabric, hosts, workload, captures and checks."""

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
from emu.spec.device import Device
from emu.spec.fault import Fault
from emu.spec.formula import expected_numbers
from emu.spec.headroom import reserved_of
from emu.spec.host import HostDefaults, HostSpec
from emu.spec.latency import latency_of
from emu.spec.management import Management
from emu.spec.merge import inherit, overlay
from emu.spec.notes import note
from emu.spec.presets import DSCPS, PRESETS
from emu.spec.quantities import (
    AUTO,
    AUTO_WRITTEN,
    OFF,
    OFF_SCHEMA,
    OFF_WRITTEN,
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
from emu.spec.vlans import Vlans, placed
from topologies.graph import Port, Switch, Topology, Wire
from topologies.scale_up import scale_up
from traffic.graph import Flow, OperationGraph, together

SpecName = Annotated[
    str, named_like("[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", "up to 64 letters, digits, -, _ and .")
]
"""The name of a spec, which is also that of its output files and folders."""

Changes = Annotated[
    dict[str, Any],
    BeforeValidator(lambda value: {} if value is None else value),
    WithJsonSchema({"type": ["object", "null"]}),
]
"""The keys that differ in a variant; an empty value means none."""


class Spec(Model):
    """A scenario: one fabric with its workload, reproducible from its text and seed."""

    name: SpecName = Field(description="Name of the scenario; the file's own name unless given.")
    about: About | None = Field(
        default=None,
        description="The result that the spec demonstrates, for pages that list results.",
    )
    fabric: FabricName = Field(
        default="roce",
        description="roce: RoCEv2 over Ethernet. ib: InfiniBand.",
        json_schema_extra=note(why="RoCEv2 is the fabric whose settings need most care"),
    )
    plane: Literal["auto", "ovs", "shim"] = Field(
        default="auto",
        description="The software that forwards packets: Open vSwitch or the emulator's own "
        "switches (always on InfiniBand). auto is ovs for roce and shim for ib.",
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
        description="How many times slower than real the fabric runs; auto is the least slowdown "
        "that this machine sustains.",
        json_schema_extra=note(
            unit="times slower",
            why="the least slowdown depends on the machine, so the machine is measured",
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
    devices: dict[str, Device] = Field(
        default={},
        description="The real devices that nodes stand for, by node; names alone, which do not "
        "change a run.",
    )
    subnet: SubnetSpec = Field(
        default=SubnetSpec(), description="Settings of the InfiniBand subnet manager."
    )
    vlans: Vlans = Field(
        default={},
        description="VLANs by their ID, each with its hosts, e.g. {10: h1-h4, 20: h5-h8}: tenants "
        "of an Ethernet fabric. A host's packets reach only hosts of the same VLAN; those without "
        "a tag belong to the VLAN of the host. Hosts that no VLAN lists reach each other. "
        "InfiniBand has subnet.partitions instead.",
        json_schema_extra=note(why="one tenant has the whole fabric"),
    )
    management: Annotated[Management | None, OFF, OFF_WRITTEN, OFF_SCHEMA] = Field(
        default=None,
        description="An out-of-band management network in labs that stay up (`emu up`): an "
        "interface mgmt0 for every host and switch, apart from the fabric; off unless given. `on` "
        "takes the defaults.",
        json_schema_extra=note(
            why="a fabric works without it, and it takes a namespace for each node"
        ),
    )
    traffic: tuple[TrafficSpec, ...] = Field(
        default=(), description="The workload: sources, destinations and sizes of messages."
    )
    faults: tuple[Fault, ...] = Field(
        default=(), description="Faults: their kinds, places, start times and durations."
    )
    recorded_routes: str | None = Field(
        default=None,
        description="A file of the routes that BGP gave the switches in an earlier run of this "
        "fabric and its faults, relative to the spec's folder: `emu run` leaves it in the results "
        "as routes.json. Unless given, control_plane: bgp lets FRR run and records them.",
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
        """The spec with the check that every flow completes, unless unfinished flows are
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

    @field_validator("vlans")
    @classmethod
    def _hosts_of_vlans_are_placed(cls, vlans: Vlans, info: ValidationInfo) -> Vlans:
        topology = info.data.get("topology")
        if topology is None or not topology.can_be_built:
            return vlans
        return placed(vlans, topology.build())

    @field_validator("subnet")
    @classmethod
    def _members_are_placed(cls, subnet: SubnetSpec, info: ValidationInfo) -> SubnetSpec:
        topology = info.data.get("topology")
        if topology is None or not topology.can_be_built:
            return subnet
        return subnet.placed(topology.build())

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
        """A switch with its merged and derived settings. Raises KeyError if it is unknown."""
        if name not in self._switches:
            given = self.given_switch(name)
            latency_ps, _ = self.switch_latency(name)
            alike = id(given), latency_ps
            if alike not in self._alike_switches:
                own = given.model_copy(update={"latency_given": latency_ps})
                self._alike_switches[alike] = own
            self._switches[name] = self._alike_switches[alike]
        return self._switches[name]

    def given_switch(self, name: str) -> SwitchSpec:
        """A switch with the merged settings of all switches, its role and itself, none derived."""
        return self._merged_switches[name]

    @cached_property
    def _switches(self) -> dict[str, SwitchSpec]:
        return {}

    @cached_property
    def _alike_switches(self) -> dict[tuple[int, int], SwitchSpec]:
        """By the given settings (which live as long as the spec) and what is derived."""
        return {}

    @property
    def fabric_kind(self) -> FabricKind:
        return FABRIC_KINDS[self.fabric]

    @cached_property
    def has_bgp(self) -> bool:
        """Whether BGP gives the switches their routes."""
        switches = self.topology.build().switch
        return self.fabric_kind.is_ethernet and any(
            self.given_switch(name).routing.control_plane == "bgp" for name in switches
        )

    @property
    def plane_in_use(self) -> Plane:
        """The software that forwards packets: Open vSwitch or the emulator's own switches."""
        planes = self.fabric_kind.planes
        return self.plane if self.plane in planes else planes[0]

    def switch_latency(self, name: str) -> tuple[int, str]:
        """The latency of a switch in picoseconds, and its source."""
        given_ps = self.given_switch(name).latency_given
        if given_ps is not None:
            return given_ps, "given"
        topology = self.topology.build()
        rates = (topology.cable[port].rate_bps for port in topology.ports[name])
        return latency_of(self.fabric_kind.framing, max(rates, default=0))

    def cuts_through(self, name: str) -> bool:
        """Whether a switch forwards a packet before all of it has arrived."""
        switching = self.switch(name).switching
        if switching == "auto":
            return self.fabric_kind.cuts_through
        return switching == "cut-through"

    @cached_property
    def _merged_switches(self) -> dict[str, SwitchSpec]:
        """Each switch's merged settings. Switches with the same layers share one object."""
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
        settings = self.switches
        roles = self.topology.build().roles[switch.name]
        layers = (settings, *map(settings.roles.get, roles), settings.nodes.get(switch.name))
        return [layer for layer in layers if layer is not None]

    def port(self, port: Port) -> SwitchSpec:
        """A switch's port with its merged and derived settings (`thresholds`; `derived` has the
        reasons)."""
        if port not in self._ports:
            self._ports[port] = self._complete(port)
        return self._ports[port]

    def given_port(self, port: Port) -> SwitchSpec:
        """A switch's port with the merged settings of its switch and itself, none derived."""
        return self._merged_ports[port]

    @cached_property
    def _ports(self) -> dict[Port, SwitchSpec]:
        return {}

    def _complete(self, port: Port) -> SwitchSpec:
        given, switch = self.given_port(port), self.switch(port.node)
        if given.ecn is None and given is self.given_switch(port.node):
            return switch
        cable = self.topology.build().cable[port]
        alike = id(given), id(switch), self.shared_pool(port.node), cable.rate_bps, cable.delay_ps
        if alike not in self._alike_ports:
            found: dict[str, Any] = {"latency_given": switch.latency_ps}
            if given.ecn is not None:
                found["ecn"] = with_thresholds(given.ecn, partial(self.curve_scale, port))
            self._alike_ports[alike] = given.model_copy(update=found)
        return self._alike_ports[alike]

    @cached_property
    def _alike_ports(self) -> dict[tuple[int, int, int, int, int], SwitchSpec]:
        """By all that the settings of a port are derived from: thousands of ports have few."""
        return {}

    def curve_scale(self, port: Port, queue: int | None) -> PortScale:
        """The inputs from which a queue's curve is derived; None: that of the queues without one of
        their own."""
        return self.port_scale(port, lossless=self.given_port(port).has_lossless(queue))

    def port_scale(self, port: Port, *, lossless: bool = True) -> PortScale:
        """The inputs from which the thresholds of a port are derived. `lossless`: of its lossless
        priorities, if it has any."""
        cable, settings = self.topology.build().cable[port], self.given_port(port)
        return PortScale(
            rate_bps=cable.rate_bps,
            delay_ps=cable.delay_ps,
            frame_bytes=self.largest_frame_bytes,
            limit=limit_of(settings, self.shared_pool(port.node), lossless=lossless),
        )

    def shared_pool(self, switch: str) -> int:
        """The bytes of a switch's buffer that its ports share."""
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
        """The classes of a host's switch, which also apply to its NIC."""
        topology = self.topology.build()
        return self.switch(topology.peer[topology.ports[host][0]].node).classes

    def dscp(self, host: str, priority: int | None) -> int:
        """The DSCP of a host's packets: its NIC's, or the lowest DSCP of `priority` if it is given.

        0 if no DSCP maps to that priority (`rules` refuses such a spec).
        """
        if priority is None:
            return self.host(host).nic.dscp
        return self.classes_of(host).dscp_of_priority(priority) or 0

    def priority(self, host: str, asked: int | None) -> int:
        """The priority of a host's packets. `asked`: the priority in the traffic entry, if any."""
        return self.classes_of(host).priority_of_dscp(self.dscp(host, asked))

    def cnp_priority(self, host: str) -> int:
        """The priority at its switch of a host's CNPs that answer data of the NIC's DSCP."""
        nic, classes = self.host(host).nic, self.classes_of(host)
        control = nic.control(nic.cc)
        dscp = control.dscp_of_cnps(nic.cnp_dscp, nic.dscp)
        own = control.pcp_of_cnps
        pcp = classes.priority_of_dscp(dscp) if own is None else own
        return classes.priority_of(dscp, None if nic.vlan is None else pcp)

    def host(self, name: str) -> HostSpec:
        """A host with the merged settings of all hosts and itself, and its preset's DSCPs."""
        settings = self._merged_hosts.get(name, self._any_host)
        return settings if name not in self._preset_dscps else self._with_dscps(name, settings)

    @cached_property
    def _preset_dscps(self) -> dict[str, tuple[int, int]]:
        """The DSCPs of RDMA packets and CNPs for each host whose switch has a preset with them."""
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
        """The DSCP keys of the NIC that come from the preset of the host's switch."""
        given = self._merged_hosts.get(host, self._any_host).nic.model_fields_set
        own = dict(zip(("dscp", "cnp_dscp"), self._preset_dscps.get(host, ()), strict=False))
        return {key: dscp for key, dscp in own.items() if key not in given}

    def _with_dscps(self, name: str, settings: HostSpec) -> HostSpec:
        alike = id(settings), *self._preset_dscps[name]
        if alike not in self._hosts_of_presets:
            nic = settings.nic.model_copy(update=self.dscps_of_preset(name))
            self._hosts_of_presets[alike] = settings.model_copy(update={"nic": nic})
        return self._hosts_of_presets[alike]

    @cached_property
    def _hosts_of_presets(self) -> dict[tuple[int, ...], HostSpec]:
        """By the settings without the preset, and the DSCPs of the preset."""
        return {}

    @cached_property
    def _any_host(self) -> HostSpec:
        return inherit(HostSpec(), self.hosts)

    @cached_property
    def _merged_hosts(self) -> dict[str, HostSpec]:
        """The hosts with settings of their own."""
        return {name: inherit(self._any_host, own) for name, own in self.hosts.nodes.items()}

    @cached_property
    def largest_mtu(self) -> int:
        """The payload of the largest packet of any host, in bytes."""
        return max(self.host(name).nic.mtu for name in self.topology.build().host)

    @cached_property
    def largest_frame_bytes(self) -> int:
        """The bytes that the longest packet of any host occupies on an Ethernet cable."""
        return max(self.host(name).nic.largest_frame_bytes for name in self.topology.build().host)

    @cached_property
    def scale_up(self) -> Topology | None:
        """The scale-up fabric within servers, with the same hosts; None without servers."""
        gpus, links = self.hosts.gpus, self.hosts.scale_up
        if gpus is None:
            return None
        hosts = self.topology.build().hosts
        return scale_up(hosts, gpus, Wire(links.rate_bps, links.delay_ps))

    def in_one_server(self, one: str, other: str) -> bool:
        """Whether two hosts communicate within their server, without a NIC."""
        if self.scale_up is None or one == other:
            return False
        switches = (
            {self.scale_up.peer[port].node for port in self.scale_up.ports[host]}
            for host in (one, other)
        )
        return bool(set.intersection(*switches))

    @property
    def ip_mtu(self) -> int:
        """The bytes of the largest IP packet on InfiniBand; IPoIB adds a header of 4 bytes."""
        mtus = (self.host(host.name).nic.mtu for host in self.topology.build().hosts)
        return min(self.subnet.ipoib_mtu, *mtus) - IPOIB_HEADER_BYTES

    def by_tcp(self, entry: TrafficEntry) -> bool:
        """Whether the entry's traffic is TCP between the hosts' kernels."""
        return (entry.stack or self.hosts.stack) == "tcp"

    def workload(self) -> OperationGraph:
        """The operations of all RDMA traffic entries. The graph is built once."""
        return self._workload

    @cached_property
    def _workload(self) -> OperationGraph:
        return together(entry.graph(self.seed) for entry in self.traffic if not self.by_tcp(entry))

    def streams(self) -> OperationGraph:
        """The operations of all TCP traffic entries. All messages of a flow are one stream."""
        return together(entry.graph(self.seed) for entry in self.traffic if self.by_tcp(entry))

    def fabric_flows(self, workload: OperationGraph | None = None) -> tuple[Flow, ...]:
        """The flows of the workload (by default this spec's) that cross the fabric."""
        flows = (workload or self.workload()).message_flows
        return tuple(flow for flow in flows if not self.in_one_server(flow.src, flow.dst))

    @cached_property
    def flow_ends(self) -> dict[str, tuple[str, str]]:
        """The source and destination of each flow, by its name. There may be millions of them."""
        entries = (entry.ends(self.seed) for entry in self.traffic)
        return {name: pair for ends in entries for name, pair in ends.items()}

    def variants(self) -> dict[str, Spec]:
        """The specs of the variants, in the order of `compare:`."""
        base = self.to_mapping()
        return {
            name: Spec.model_validate(variant(base, changes))
            for name, changes in self.compare.items()
        }

    def to_mapping(self) -> dict[str, Any]:
        """The keys that were given, as in a file."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    @cached_property
    def written(self) -> dict[str, Any]:
        """The keys that were given, as in a file; built once."""
        return self.to_mapping()

    def to_json(self) -> str:
        """The spec with its settings applied, as JSON for `spec_from_json`."""
        return self.model_dump_json(by_alias=True, exclude_unset=True)


def _layered(layers: Iterable[SwitchSpec]) -> SwitchSpec:
    """The merged settings of layers, the most general first. Each layer overrides those before it.

    The preset of a layer replaces the preset of an earlier one: wholly if it is `none`, otherwise
    in each section that the later preset has.
    """
    settings = keys_alone = SwitchSpec()
    for layer in layers:
        preset = PRESETS.get(layer.preset)
        if preset is None and "preset" in layer.model_fields_set:
            settings = keys_alone
        elif preset is not None:
            anew = inherit(keys_alone, preset)
            sections = {name: getattr(anew, name) for name in preset.model_fields_set}
            settings = settings.model_copy(update=sections)
        settings, keys_alone = inherit(settings, layer), inherit(keys_alone, layer)
    return settings


def variant(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A variant's mapping. The checks of the base apply to the base alone and are left out."""
    shared = {key: value for key, value in base.items() if key not in ("compare", "verify")}
    return overlay(shared, changes)


def spec_from_json(text: str) -> Spec:
    """The spec in the text of `Spec.to_json`."""
    return Spec.model_validate_json(text)
