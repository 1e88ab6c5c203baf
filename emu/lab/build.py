"""Carries out the steps of a plan. No other module does."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from functools import singledispatchmethod
from itertools import groupby
from typing import TYPE_CHECKING, cast

from emu.errors import FabricError, HostError
from emu.lab import ovs
from emu.lab.command import run
from emu.lab.marker.marker import Marker, marker_program
from emu.lab.namespace import PRIVATE
from emu.lab.net import FabricNet
from emu.lab.net_steps import NetStep
from emu.lab.netns import entered, write_sysctl
from emu.lab.netns_holder import keep_host
from emu.lab.offload import turn_offloads_off
from emu.lab.plan import (
    LAB,
    OVS,
    SHIM,
    AddCable,
    AddHost,
    AddNamespace,
    AddSwitch,
    AddSystem,
    AttachMarker,
    HoldUdpPort,
    LoadFirewall,
    LoadRoutes,
    NoIpv6,
    OffloadsOff,
    PlaceRed,
    StartSwitches,
    Step,
    WatchLinks,
    WatchRoutes,
)
from emu.lab.supervisor import Supervisor
from emu.lab.udp_port_guard import hold_udp_port

if TYPE_CHECKING:
    from emu.lab.link_watch import LinkWatch
    from emu.lab.route_watch import RouteWatch


class BuiltLab:
    """The parts of a lab that are built. They live as long as the lab's first process."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.net = FabricNet(self._adopt_shell)
        """The hosts and switches, for Mininet's prompt."""
        self.pids = {LAB: os.getpid()}
        """Namespace -> a process or thread in it; `OVS` -> ovs-vswitchd."""
        self.marker: Marker | None = None
        self.no_marker = ""
        """Why the planned eBPF marker could not be attached; empty if it could."""
        self.links: LinkWatch | None = None
        """The watch on the cables' ends in the shim's namespace; None until they exist."""
        self.routes: RouteWatch | None = None
        """The watch on the hosts' default routes; None where they have none."""
        self._supervisor = supervisor
        self._held: list[socket.socket] = []

    def build(self, steps: Iterable[Step]) -> None:
        """Carries out steps, in order. Raises HostError or FabricError."""
        for is_net_step, alike in groupby(steps, lambda step: isinstance(step, NetStep)):
            if is_net_step:
                self._configure_network(cast(Iterable[NetStep], alike))
            else:
                for step in alike:
                    self._do(step)

    def _configure_network(self, steps: Iterable[NetStep]) -> None:
        from emu.lab.netlink import (
            carry_out,
        )  # imports pyroute2, while the lab's other processes load

        carry_out(steps, self.pids)

    @singledispatchmethod
    def _do(self, step: Step) -> None:
        raise NotImplementedError(step)

    @_do.register
    def _add_host(self, step: AddHost) -> None:
        self.pids[step.name] = keep_host()
        self.net.add_host(step.name, step.ip, self.pids[step.name], step.interface)

    @_do.register
    def _add_system(self, step: AddSystem) -> None:
        self.pids[step.switch] = keep_host()

    @_do.register
    def _add_namespace(self, step: AddNamespace) -> None:
        self.pids[step.name] = keep_host(step.hosts)

    @_do.register
    def _add_switch(self, step: AddSwitch) -> None:
        self.net.add_switch(step.name, step.dpid, self.pids.get(step.name, self.pids[LAB]))

    @_do.register
    def _add_cable(self, step: AddCable) -> None:
        self.net.add_cable(step.a, step.b)

    @_do.register
    def _no_ipv6(self, step: NoIpv6) -> None:
        with entered(self.pids[step.namespace]):
            for scope in ("all", "default"):
                write_sysctl(f"net.ipv6.conf.{scope}.disable_ipv6", "1")

    @_do.register
    def _offloads_off(self, step: OffloadsOff) -> None:
        with entered(self.pids[step.namespace]):
            for interface in step.interfaces:
                turn_offloads_off(interface)

    @_do.register
    def _hold_udp_port(self, step: HoldUdpPort) -> None:
        with entered(self.pids[step.namespace]):
            self._held.append(hold_udp_port(step.port))

    @_do.register
    def _load_firewall(self, step: LoadFirewall) -> None:
        with entered(self.pids[step.namespace]):
            run(["nft", "--file", "-"], stdin=step.ruleset)

    @_do.register
    def _watch_links(self, step: WatchLinks) -> None:
        from emu.lab.link_watch import LinkWatch  # imports pyroute2

        self.links = LinkWatch(self.pids[step.namespace])

    @_do.register
    def _watch_routes(self, step: WatchRoutes) -> None:
        from emu.lab.route_watch import RouteWatch  # imports pyroute2

        self.routes = RouteWatch({host: self.pids[host] for host in step.hosts})

    @_do.register
    def _start_switches(self, step: StartSwitches) -> None:
        ovs.start_database(self._supervisor)
        ovs.define_bridges(step.transaction)
        self.pids[OVS] = ovs.start_switches(self._supervisor, punctual=step.punctual)

    @_do.register
    def _load_routes(self, step: LoadRoutes) -> None:
        ovs.load_routes(step.tables)

    @_do.register
    def _attach_marker(self, step: AttachMarker) -> None:
        """Attaches the marker. If it cannot be compiled, loaded or attached, the lab has none."""
        try:
            program = marker_program(PRIVATE)
            with entered(self.pids[SHIM if step.at_join else LAB]):
                marker = Marker(program, step.ports)
            if not step.at_join:
                self._configure_network(marker.attach_steps(LAB))
            self.marker = marker
        except OSError as error:
            self.no_marker = f"eBPF cannot be loaded here ({error.strerror or error})"
        except HostError as error:
            self.no_marker = error.what
        except FabricError as error:
            self.no_marker = str(error)

    @_do.register
    def _place_red(self, step: PlaceRed) -> None:
        lines = "".join(f"{line}\n" for port in step.ports for line in port.lines())
        run(["tc", "-batch", "-"], stdin=lines)

    def _adopt_shell(self, node: str, pid: int) -> None:
        self._supervisor.watch_child(f"the shell of {node}", pid)
