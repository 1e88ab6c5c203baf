"""What a standing lab can be asked for, and the answers: values, and open files beside them.

ask                     answer                                    files
version                 of the code that the lab runs; what else is asked follows it
status                  name, spec, slowdown, traffic ...
look                    status, faults, deadlocks, and what    the boards
                        is on the boards
see                     what the shim sees at this moment
enter {node}            environment and tasks of all nodes        its namespaces
traffic {do}            how the traffic is now
ports                   fabric, and the rate of each switch port
tap {port since_start}  -                                         a socket with raw records
faults {do ...}         the faults there are then: of cables, switches and NICs
nic {host}              interface and subnet                     a socket on the host's interface
paths                   service levels of InfiniBand's paths, for who connects by them now
diagnose {node command} what InfiniBand's tools say there
down                    -
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

from emu.bindings.af_packet_driver import packet_socket
from emu.daemon.faults import check_settings
from emu.daemon.nics import Nics
from emu.daemon.traffic import Traffic
from emu.errors import UsageError
from emu.lab.command import environment
from emu.lab.ipc.messages import Ask, Done, Faults, Json, Look, Message, Request
from emu.lab.ipc.rpc import Line
from emu.lab.netns import entered
from emu.lab.plan import LAB
from emu.lab.session import Session, notes_of
from emu.lab.supervisor import Supervisor
from emu.lab.version import version
from emu.spec.diagnostic import unknown_name
from emu.spec.fault import Fault, fault_names
from emu.spec.fault.kind import OnHost
from emu.spec.outages import lost_links

Answer = tuple[Json, list[int]]
"""The files are the asker's, and closed here once they are sent."""

_NAMESPACES = ("user", "pid", "net", "mnt")
"""In this order they must be entered: the first gives the right to enter the others."""
_ENVIRONMENT = ("PATH", "OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR")
"""What programs in the lab need to find its Open vSwitch, and Debian's programs."""

_TOLD_OF_FAULTS = (
    "name",
    "kind",
    "place",
    "at_ns",
    "end_ns",
    "packets_seen",
    "hits",
    "packets_dropped",
)
"""Fields of a `SeenFault` that a fault's record has."""


class LabServer:
    """Answers questions. Several threads may ask at the same time."""

    def __init__(
        self, request: Request, session: Session, supervisor: Supervisor, began_ns: int
    ) -> None:
        """`began_ns`: the lab's emulated time 0, on CLOCK_MONOTONIC."""
        self.over = threading.Event()
        """Set when somebody has asked for the lab's end."""
        self._slowdown = request.options["slowdown"]
        self._session = session
        self._began = time.monotonic()
        self._shim = Line(session.shim, "the shim", session.spec.name)
        self._nics = Nics(session, supervisor, self._slowdown, began_ns)
        self._traffic = Traffic(session, supervisor, self._shim, self._nics, self._slowdown)
        self._changing_faults = threading.Lock()
        spec = session.spec
        self._defined = dict(zip(fault_names(spec.faults), spec.faults, strict=True))
        """Every fault that there is or was, by name."""
        (self._ports,) = session.shim.take_files()
        version()  # works it out now: when somebody asks, the files may be others
        self._answers: dict[str, Callable[..., Answer]] = {
            "version": self._version,
            "status": self._status,
            "look": self._look,
            "see": self._see,
            "enter": self._enter,
            "traffic": self._change_traffic,
            "ports": self._list_ports,
            "tap": self._tap,
            "faults": self._change_faults,
            "nic": self._lend_nic,
            "paths": self._tell_paths,
            "diagnose": self._diagnose,
            "down": self._down,
        }

    def answer(self, ask: Message) -> tuple[Done, list[int]]:
        """Raises UsageError for what cannot be done."""
        if not isinstance(ask, Ask) or ask.what not in self._answers:
            raise UsageError(f"this lab was brought up by emu {version()} and does not know {ask}")
        value, files = self._answers[ask.what](**ask.options)
        return Done(value), files

    def _version(self) -> Answer:
        return {"version": version()}, []

    def _status(self) -> Answer:
        session = self._session
        manager = session.subnet or session.routing
        return {
            "name": session.spec.name,
            "spec": session.setup.spec,
            "slowdown": self._slowdown,
            "plane": session.plane,
            "marker": session.marker,
            "notes": notes_of(session),
            "ip": session.has_ip,
            "up_seconds": time.monotonic() - self._began,
            "traffic": self._traffic.state,
            "sweeps": session.subnet.sweeps if session.subnet else [],
            "links": manager.links.entries if manager else [],
        }, []

    def _look(self) -> Answer:
        status, _ = self._status()
        legends, files = self._traffic.shown.look()
        with ExitStack() as unless_answered:
            for file in files:
                unless_answered.callback(os.close, file)
            answer = self._shim.ask(Faults("list"))
            faults = [*answer["faults"], *self._nics.faults()]
            ports = os.dup(self._ports)
            unless_answered.pop_all()
        there = {"faults": list(map(self._seen, faults)), "deadlocks": answer["deadlocks"]}
        legends["ports"] = self._session.shim_told["board"]
        return {**status, **legends, **there}, [ports, *files]

    def _seen(self, record: Json) -> Json:
        """The fields of a `SeenFault`."""
        fault = self._defined.get(record["name"])
        seen: Json = {key: record[key] for key in _TOLD_OF_FAULTS}
        if fault is None:
            return seen
        spec = self._session.spec
        topology = spec.topology.build()
        lost = {topology.cable[port] for port in lost_links(fault, spec, topology)}
        cables = sorted(topology.port_name[cable.a] for cable in lost)
        return {**seen, "cables": cables, "spec": fault.to_mapping()}

    def _see(self) -> Answer:
        return self._shim.ask(Look()), []

    def _enter(self, node: str | None) -> Answer:
        """A host's namespaces; a switch is in the lab's own, and so is `None`."""
        pids, topology = self._session.lab.pids, self._session.spec.topology.build()
        if node is not None:
            self._check_node(node)
        task = pids[node] if node in topology.host else pids[LAB]
        files: list[int] = []
        with ExitStack() as unless_answered:
            for kind in _NAMESPACES:
                files.append(os.open(f"/proc/{task}/ns/{kind}", os.O_RDONLY))
                unless_answered.callback(os.close, files[-1])
            unless_answered.pop_all()
        own = {key: value for key, value in environment().items() if key in _ENVIRONMENT}
        tasks = {name: pids[name] for name in (LAB, *topology.host)}
        return {"environment": own, "tasks": tasks}, files

    def _check_node(self, node: str) -> None:
        topology = self._session.spec.topology.build()
        known = [*topology.host, *topology.switch]
        if node not in known:
            raise UsageError(unknown_name("host or switch", node, known))

    def _change_traffic(self, do: str) -> Answer:
        if do not in ("start", "stop"):
            raise UsageError(f"traffic takes start and stop, not {do}")
        if do == "start":
            self._traffic.start()
        else:
            self._traffic.stop()
        return self._traffic.state, []

    def _list_ports(self) -> Answer:
        spec = self._session.spec
        topology = spec.topology.build()
        rates = {
            topology.port_name[port]: topology.cable[port].rate_bps
            for port in topology.switch_ports
        }
        return {"fabric": spec.fabric, "ports": rates}, []

    def _tap(self, port: str, since_start: bool = False) -> Answer:
        known = list(self._list_ports()[0]["ports"])
        if port not in known:
            raise UsageError(unknown_name("port", port, known))
        if since_start:
            self._check_history(port)
        return {}, [self._shim.tap(port, since_start=since_start)]

    def _check_history(self, port: str) -> None:
        kept = self._session.spec.capture
        if "all" not in kept and port not in kept:
            whose = f"{', '.join(kept)} alone" if kept else "no port"
            raise UsageError(
                f"{port} has no history: the spec's `capture:` keeps that of {whose}; leave "
                f"--since-start out, or bring the lab up with --set 'capture=[\"{port}\"]'"
            )

    def _change_faults(self, do: str, name: str = "", fault: Json | None = None) -> Answer:
        with self._changing_faults:
            there = {one["name"]: one for one in self._faults()}
            if do == "clear":
                if name not in there:
                    raise UsageError(unknown_name("fault", name, list(there)))
                self._clear_fault(name)
            elif do == "set":
                self._set_fault(name, Fault.model_validate(fault), there)
            return {"faults": self._faults()}, []

    def _faults(self) -> list[Json]:
        """Of cables and switches, which the shim has, then of NICs."""
        in_shim: list[Json] = self._shim.ask(Faults("list"))["faults"]
        return [*in_shim, *self._nics.faults()]

    def _set_fault(self, name: str, fault: Fault, there: dict[str, Json]) -> None:
        """`there`: those that there are, by name."""
        lasting = {
            own: one
            for own, one in there.items()
            if one["state"] != "over" or self._nics.fault_comes_again(own)
        }
        if name in lasting:
            raise UsageError(f"there is a fault {name!r} already; clear it, or name this one")
        check_settings(fault, lasting.values())
        if name in there:
            self._clear_fault(name)
        self._defined[name] = fault
        if isinstance(fault.what, OnHost):
            self._nics.set_fault(name, fault)
        else:
            self._shim.ask(Faults("set", name, fault.to_mapping()))

    def _clear_fault(self, name: str) -> None:
        if self._nics.has_fault(name):
            self._nics.clear_fault(name)
        else:
            self._shim.ask(Faults("clear", name))

    def _lend_nic(self, host: str) -> Answer:
        """The place of a host's NIC, for a program that is that NIC itself."""
        if self._traffic.state["state"] == "running":
            raise UsageError("the lab's traffic has the NICs; `emu traffic stop` first")
        topology = self._session.spec.topology.build()
        if host not in topology.host:
            raise UsageError(unknown_name("host", host, list(topology.host)))
        interface = topology.ports[host][0].interface
        with entered(self._session.lab.pids[host]):
            opened, ifindex = packet_socket(interface), socket.if_nametoindex(interface)
        subnet = self._session.subnet
        told = subnet.join().to_json() if subnet else None
        return {"ifindex": ifindex, "subnet": told}, [opened.detach()]

    def _tell_paths(self) -> Answer:
        subnet = self._session.subnet
        return {"levels": subnet.join().levels if subnet else {}}, []

    def _diagnose(self, node: str, command: list[str]) -> Answer:
        subnet = self._session.subnet
        if subnet is None:
            raise UsageError(f"{command[0]} is for InfiniBand, and this fabric is RoCE")
        self._check_node(node)
        waits = self._nics.host_waits()
        ports = self._shim.ask(Look())["ports"]
        return subnet.diagnose(node, command, ports, waits)._asdict(), []

    def _down(self) -> Answer:
        self.over.set()
        return {}, []
