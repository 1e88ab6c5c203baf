"""The test bench: the ports under test of the user's fabric, and specs with the traffic of a case.

    tester (a host) ──▶ switch under test ──▶ tester (another host)

The topology and all settings of switches are the user's. Of the NICs only what a switch can see is
kept: VLAN tag, ECN bits and response time. Hosts of other switches send where a case needs more
senders than the switch has hosts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from emu.errors import UsageError
from emu.fabric_kind import FlowControl
from emu.plans.case import NotApplicable
from emu.plans.pauses import TimedFrame, refreshed
from emu.plans.requirements import Requirements
from emu.plans.traffic import WIRE_OVERHEAD, Stream
from emu.plans.trial import Trial
from emu.spec.from_code import spec_from_mapping
from emu.spec.scenario import Spec
from emu.spec.switch import SwitchSpec, Watchdog
from topologies.graph import Port, Topology

START_NS = 20_000
"""Traffic starts after the first pauses have arrived."""
PACKETS = 400
"""Packets of each flow in the time that is measured: 2 % of them are 8."""
_SHORTEST_NS = 100_000
LARGE = 4096
_KEPT_OF_NIC = ("vlan", "ecn", "pause_response")
_KEPT = ("topology", "switches", "devices", "fabric")


@dataclass(frozen=True)
class Bench:
    """The fabric under test."""

    spec: Spec
    required: Requirements

    @cached_property
    def topology(self) -> Topology:
        return self.spec.topology.build()

    @cached_property
    def switch(self) -> str:
        """The switch under test: the first of those with the most hosts."""
        count = {switch: len(hosts) for switch, hosts in self._hosts_by_switch.items()}
        return max(count, key=lambda switch: count[switch])

    @cached_property
    def _hosts_by_switch(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for host in self.topology.host:
            for port in self.topology.ports[host]:
                found.setdefault(self.topology.peer[port].node, []).append(host)
        return found

    @cached_property
    def testers(self) -> list[str]:
        """The hosts at the switch under test."""
        return list(dict.fromkeys(self._hosts_by_switch[self.switch]))

    @property
    def receiver(self) -> str:
        return self.testers[-1]

    @cached_property
    def senders(self) -> list[str]:
        """All other hosts, those of the switch under test first."""
        others = [host for host in self.topology.host if host not in self.testers]
        return [*self.testers[:-1], *others]

    def port_of(self, host: str) -> str:
        """The switch's port to a host."""
        return self.topology.port_name[self._switch_port(host)]

    def nic_of(self, host: str) -> str:
        """The host's own port."""
        return self.topology.port_name[self.topology.ports[host][0]]

    def _switch_port(self, host: str) -> Port:
        return self.topology.peer[self.topology.ports[host][0]]

    def settings_at(self, host: str) -> SwitchSpec:
        """The settings of the switch's port to a host."""
        return self.spec.port(self._switch_port(host))

    @cached_property
    def line_bps(self) -> int:
        """The rate of the slowest port under test."""
        hosts = (self.receiver, *self.senders[:2])
        return min(self.topology.cable[self.topology.ports[host][0]].rate_bps for host in hosts)

    @property
    def lossless(self) -> tuple[int, ...]:
        """Priorities that must be lossless, the one that cases pause first at the front.

        Raises NotApplicable when there is none.
        """
        if not self._lossless:
            raise NotApplicable(
                f"no port of {self.switch} has PFC; give it switches.pfc, or state with "
                "--emu-plan-require lossless=3 what must be lossless"
            )
        return self._lossless

    @cached_property
    def _lossless(self) -> tuple[int, ...]:
        own = {p for host in self.testers for p in self._pfc_priorities(host)}
        found = self.required.lossless or own
        return tuple(sorted(found, key=lambda priority: (priority != 3, priority)))

    def _pfc_priorities(self, host: str) -> tuple[int, ...]:
        pfc = self.settings_at(host).pfc
        return pfc.priorities if pfc else ()

    def two_lossless(self) -> tuple[int, int]:
        """Raises NotApplicable."""
        if len(self.lossless) < 2:
            raise NotApplicable(
                f"it needs two lossless priorities, and {self.switch} has {self.lossless[0]} only"
            )
        return self.lossless[0], self.lossless[1]

    @cached_property
    def priorities(self) -> tuple[int, ...]:
        """All priorities to which a DSCP leads, and those that are required: a spec is refused,
        and the case fails, where no DSCP leads to one of them."""
        required = set(self.required.lossless or ())
        return tuple(sorted(self.spec.classes_of(self.senders[0]).priorities | required))

    def lossy(self) -> tuple[int, ...]:
        """Priorities that are not lossless. Raises NotApplicable when there is none."""
        found = tuple(p for p in self.priorities if p not in self._lossless)
        if not found:
            raise NotApplicable("every DSCP leads to a lossless priority, and it needs a lossy one")
        return found

    def watchdog(self) -> Watchdog:
        """The watchdog of the switch under test. Raises NotApplicable."""
        watchdog = self.spec.switch(self.switch).watchdog
        if watchdog is None:
            raise NotApplicable(f"{self.switch} has no PFC watchdog; give it switches.watchdog")
        return watchdog

    def streams(
        self,
        priorities: Iterable[int],
        *,
        payload: int = LARGE,
        share: float = 1 / 8,
        source: str | None = None,
        to: str | None = None,
        name: str = "p",
    ) -> list[Stream]:
        """A flow for each priority, at a share of the line."""
        return [
            Stream(
                name=f"{name}{priority}",
                source=source or self.senders[0],
                to=to or self.receiver,
                priority=priority,
                payload=payload,
                rate_bps=share * self.line_bps,
            )
            for priority in priorities
        ]

    def window_ns(self, payload: int = LARGE, share: float = 1 / 8) -> int:
        """How long to measure: `PACKETS` packets of a flow, but many bursts of small packets."""
        return max(
            _SHORTEST_NS, round(PACKETS * (payload + WIRE_OVERHEAD) * 8e9 / (share * self.line_bps))
        )

    def trial(
        self,
        streams: Sequence[Stream],
        *,
        for_ns: int,
        storms: Iterable[Storm] = (),
        frames: Iterable[TimedFrame] = (),
        faults: Iterable[Mapping[str, Any]] = (),
        watchdog: Mapping[str, Any] | None = None,
        seed: int = 1,
    ) -> Trial:
        """A fabric with these flows from `START_NS` on, for `for_ns`. Watchdogs are off unless
        `watchdog` has the keys of one, `{}` for the user's own."""
        storms = [*storms]
        obeyed = [storm for storm in storms if self._obeys(storm)]
        own = [storm for storm in storms if not self._obeys(storm)]
        entries = [stream.entry(START_NS, for_ns) for stream in streams]
        every = [*faults, *(fault for storm in obeyed for fault in storm.faults())]
        spec = self._spec(entries, every, START_NS + 4 * for_ns, watchdog)
        spec = spec.model_copy(update={"seed": seed})
        injected = [frame for storm in own for frame in self._frames(storm)]
        return Trial(spec, [*frames, *injected])

    def _obeys(self, storm: Storm) -> bool:
        """A spec refuses pauses that the port ignores; then their frames are put in one by one."""
        return set(storm.priorities) <= set(self._pfc_priorities(storm.host))

    def _frames(self, storm: Storm) -> Iterable[TimedFrame]:
        rate = self.topology.cable[self.topology.ports[storm.host][0]].rate_bps
        port = self.nic_of(storm.host)
        return refreshed(port, storm.priorities, rate, storm.start_ns, storm.end_ns)

    def _spec(
        self,
        traffic: list[dict[str, Any]],
        faults: list[Mapping[str, Any]],
        limit_ns: int,
        watchdog: Mapping[str, Any] | None,
    ) -> Spec:
        given = deepcopy(self.spec.to_mapping())
        data = {key: given[key] for key in _KEPT if key in given}
        data["switches"] = _with_watchdog(data.get("switches", {}), watchdog)
        data |= {
            "name": "acceptance",
            "payload": "elided",
            "unfinished": "allow",
            "time_limit": f"{limit_ns}ns",
            "hosts": _tester_nics(given.get("hosts", {})),
            "traffic": traffic,
            "faults": faults,
        }
        return spec_from_mapping(data, source="the plan's spec", folder=Path())


@dataclass(frozen=True)
class Storm:
    """A host that pauses priorities of its switch from one time to another."""

    host: str
    priorities: tuple[int, ...]
    start_ns: int
    end_ns: int

    def faults(self) -> list[dict[str, Any]]:
        """The faults of a spec, one for each priority."""
        return [
            {
                "at": f"{self.start_ns}ns",
                "for": f"{self.end_ns - self.start_ns}ns",
                "pause-storm": {"host": self.host, "priority": priority},
            }
            for priority in self.priorities
        ]


def bench_of(spec: Spec, required: Requirements, source: str) -> Bench:
    """The bench of a spec. Raises UsageError for a fabric that plans are not for."""
    if spec.fabric_kind.flow_control is not FlowControl.PAUSES:
        raise UsageError(
            f"{source}: is on InfiniBand, whose flow control are credits; acceptance plans are for "
            "PFC and ECN on Ethernet: use a spec with fabric: roce"
        )
    bench = Bench(spec, required)
    if len(bench.topology.host) < 2:
        raise UsageError(f"{source}: has one host, and a plan needs two or more")
    return bench


def _with_watchdog(switches: dict[str, Any], watchdog: Mapping[str, Any] | None) -> dict[str, Any]:
    """The switches' settings without watchdogs, or with these keys of all of them changed.

    BGP is left out, too: traffic stays within a switch or takes the shortest paths.
    """
    layers: list[dict[str, Any]] = [switches]
    for group in ("roles", "nodes"):
        layers += switches.get(group, {}).values()
    for layer in layers:
        for key in ("control_plane", "bgp"):
            layer.get("routing", {}).pop(key, None)
        if watchdog is None:
            layer.pop("watchdog", None)
        elif isinstance(layer.get("watchdog"), dict):
            layer["watchdog"].update(watchdog)
        elif layer.get("watchdog") == "on":
            layer["watchdog"] = dict(watchdog) or "on"
    return switches


def _tester_nics(hosts: Mapping[str, Any]) -> dict[str, Any]:
    """The NICs of testers, with what the switch can see of the user's."""
    nodes = {name: _kept(node) for name, node in hosts.get("nodes", {}).items()}
    common = _kept(hosts)["nic"] | {"mtu": LARGE, "cc": "none"}
    return {"nic": common, "nodes": {name: node for name, node in nodes.items() if node["nic"]}}


def _kept(host: Mapping[str, Any]) -> dict[str, Any]:
    nic = host.get("nic", {})
    return {"nic": {key: nic[key] for key in _KEPT_OF_NIC if key in nic}}


def names_of(priorities: Collection[int]) -> str:
    """`3 and 4`, for sentences."""
    *first, last = map(str, priorities)
    return f"{', '.join(first)} and {last}" if first else last
