"""InfiniBand's subnet manager of a running fabric: it detects lost links and reroutes.

    shim                      lab (this file)               ibsim            OpenSM
     a link goes down
     LinksChanged ───────────▶ pulls the cable ────────────▶ sends a trap ──▶ sweeps
     switches follow ◀─ Tables reads OpenSM's dump ◀──────────────────────────┘

A thread does this as long as the lab runs. It also follows other sweeps, for example those of a
standby that takes over. After each sweep the thread asks for path records again (`level_query.py`).
NICs and queue pairs created later use the new service levels; existing ones, ib0 included, keep
theirs, and a note reports whether the mix forms a credit loop (`levels_in_use.py`).

OpenSM is not part of the data plane: when it dies, packets follow the existing tables, and a note
reports it. ibsim represents the fabric to OpenSM; if it dies, the lab ends.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from emu.engines import ENGINES_WITH_LEVELS
from emu.errors import FabricError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.queries import PortSnapshot
from emu.lab.ipc.routing import Converging, LinksChanged, Sweep, Tables
from emu.lab.level_query import LevelQuery, State
from emu.lab.levels_in_use import LevelsInUse
from emu.lab.link_history import LinkHistory
from emu.lab.namespace import PRIVATE
from emu.lab.supervisor import Supervisor
from emu.spec.scenario import Spec
from emu.subnet.diagnostics import Diagnosis, diagnose, tell_counters
from emu.subnet.manager import ManagedFabric
from emu.subnet.routing_check import KeptLevels, approved, engine_note, kept_levels
from emu.subnet.sm_sweeps import manager_hosts, pairs_of, policy_of
from emu.subnet.subnet import Lfts, PathSLs, Subnet
from emu.units import PS_PER_NS
from topologies.graph import Cable, Topology

_SECONDS_BETWEEN_POLLS = 0.25


class LiveSubnet:
    """The subnet management of a lab's fabric. It exists before the fabric starts."""

    def __init__(
        self, spec: Spec, topology: Topology, supervisor: Supervisor, *, all_hosts: bool
    ) -> None:
        """Returns after the first sweep. With `all_hosts` the lab requests path records between all
        hosts, else only between those of the spec's traffic.

        Raises HostError, and FabricError, also if OpenSM does not do what the spec requires.
        """
        self._spec, self._topology = spec, topology
        hosts = self._manager_hosts()
        fabric = ManagedFabric(topology, policy_of(spec), PRIVATE / "subnet", hosts=hosts)
        self._managed = fabric.__enter__()  # ends with the lab
        supervisor.watch_child("ibsim", self._managed.simulator.pid)
        self._pairs = sorted(pairs_of(spec, all_pairs=all_hosts))
        self.now = approved(spec, topology, self._managed.subnet(self._pairs), self._pairs)
        """The outcome of the latest sweep."""
        self._first_engine = self.now.engine
        self._running = set(hosts)
        """Hosts whose OpenSM is alive."""
        self.notes = list(self.now.notes)
        """Notes for the lab's user."""
        self._query = LevelQuery(self._pairs)
        self._in_use = LevelsInUse(self.now.levels, self.notes)
        self.sweeps: list[Sweep] = []
        """The sweeps that link changes have caused."""
        self.links = LinkHistory()
        self._change = LinksChanged(0, ())
        self._changed_at = time.monotonic()
        near, self.far = socket.socketpair()
        """The shim's end of the channel."""
        self._shim = Channel(near)
        threading.Thread(target=self._attend, name="subnet", daemon=True).start()

    def _manager_hosts(self) -> tuple[str, ...]:
        """The hosts that run OpenSM, the master first."""
        return manager_hosts(self._spec, self._topology)

    def connect(self) -> Subnet:
        """The tables and levels for NICs that replace all others. They keep these levels."""
        self._in_use.replace_all()
        return self.join()

    def join(self) -> Subnet:
        """The tables and levels for one more NIC or queue pair. It keeps these levels."""
        now = self.now
        self._in_use.add(now.levels)
        return now

    @property
    def managers(self) -> tuple[str, ...]:
        """The hosts that were given an OpenSM."""
        return tuple(self._managed.managers)

    @property
    def master(self) -> str:
        """The host of the acting master; if no OpenSM runs, one of those that had it."""
        return self._managed.master

    def diagnose(
        self,
        node: str,
        command: Sequence[str],
        ports: Mapping[str, PortSnapshot],
        host_waits: Mapping[str, int],
    ) -> Diagnosis:
        """Runs a command of infiniband-diags on this host or switch.

        `ports`: a snapshot of the switch ports. `host_waits`: PortXmitWait of hosts.
        """
        counters = {name: own.counters for name, own in ports.items()}
        tell_counters(self._managed.simulator, self._topology, counters, host_waits)
        return diagnose(self._managed.simulator, node, command)

    # ---- the thread --------------------------------------------------------

    def _attend(self) -> None:
        with suppress(EOFError):
            while True:
                master = self._managed.opensm
                try:
                    self._wait_and_answer()
                    self._check_managers()
                    self._request_levels()
                except FabricError as error:
                    if master.is_running:  # if OpenSM died, another note reports that
                        self.notes.append(_first_line(error))

    def _wait_and_answer(self) -> None:
        seconds = 0 if self._query.state is State.ASKING else _SECONDS_BETWEEN_POLLS
        if not self._shim.has_more(seconds):
            return
        match self._shim.receive():
            case Converging() as answer:
                self.links.converging(answer)
            case LinksChanged() as change:
                self._change = change
                self._changed_at = time.monotonic()
                self.links.changed(change)
                self._answer()

    def _answer(self) -> None:
        """Answers a link change with the tables of the sweep after the trap, and of one more."""
        before = self._managed.master
        changed = self._managed.pull(frozenset(map(self._cable, self._change.down)))
        self._note_master(before)
        if changed and self._managed.opensm.is_running:
            self._managed.opensm.wait_for_next_sweep()
            self._send_tables()
            self._managed.opensm.sweep_and_wait()
            self._follow_sweep()

    def _cable(self, port: str) -> Cable:
        return self._topology.cable[self._topology.port_named[port]]

    def _note_master(self, before: str) -> None:
        """Adds a note if a link change has made another OpenSM the master."""
        master = self._managed.master
        if master == before or not self._managed.managers[before].is_running:
            return  # a death has its own note
        if self._managed.can_manage(before):
            self.notes.append(f"OpenSM on {master} is back; {before} stands by")
        else:
            self.notes.append(f"OpenSM on {before} is cut off; {master} takes over")

    # ---- tables ------------------------------------------------------------

    def _send_tables(self) -> None:
        """Sends the tables as the answer to the latest link change."""
        self._send(self._managed.tables())

    def _send(self, lfts: Lfts) -> None:
        seconds = time.monotonic() - self._changed_at
        self._shim.send(Tables(lfts, self._change.at_ps, self._change.down, seconds))
        self.now = replace(self.now, lfts=lfts)
        self.sweeps.append(Sweep(self._change.at_ps // PS_PER_NS, round(seconds, 3)))
        self._note_engine()

    def _note_engine(self) -> None:
        """Adds a note if another routing engine than the first made the tables."""
        before, engine = self.now.engine, self._managed.opensm.engine_used()
        self.now = replace(self.now, engine=engine)
        if engine not in (before, self._first_engine):
            self.notes.append(engine_note(self._first_engine, engine))

    def _follow_sweep(self) -> None:
        """Sends the tables if they are new, and requests path records again in any case."""
        if self._managed.tables() != self.now.lfts:
            self._send_tables()
        has_levels = self.now.engine in ENGINES_WITH_LEVELS
        self._query.swept(has_levels=has_levels)
        if not has_levels:
            self._use_levels({})

    # ---- service levels ----------------------------------------------------

    def _request_levels(self) -> None:
        batch = self._query.next_batch()
        if not batch:
            return
        try:
            answer = self._managed.levels(batch)
        except FabricError as error:
            self._note_unanswered(error)
        else:
            self._query.answered(answer)
        if self._query.is_settled:
            self._use_levels(self._query.levels)

    def _note_unanswered(self, error: FabricError) -> None:
        """Adds a note when requests end without an answer; not if OpenSM died, which has a note."""
        runs = self._managed.opensm.is_running
        self._query.unanswered(may_ask_again=runs)
        if self._query.is_settled and runs:
            self.notes.append(
                f"after a sweep {self._query.left} of {len(self._pairs)} paths have no service "
                "level; queue pairs that connect now use hosts.nic.sl there: "
                f"{_first_line(error)}"
            )

    def _use_levels(self, levels: PathSLs) -> None:
        """Uses these levels from now on, and adds a note about them together with those in use."""
        self.now = replace(self.now, levels=levels)
        self._in_use.update_note(self._kept_levels)

    def _kept_levels(self, in_use: Sequence[PathSLs]) -> KeptLevels | None:
        left = self._managed.paths_left(self._pairs)
        return kept_levels(self._spec, self._topology, in_use, self.now, left)

    # ---- the OpenSM processes ----------------------------------------------

    def _check_managers(self) -> None:
        """Adds a note for each OpenSM that died, and follows sweeps that no link change caused."""
        for host, manager in self._managed.managers.items():
            if host in self._running and not manager.is_running:
                self._running.remove(host)
                self.notes.append(f"OpenSM on {host} died; {self._what_now()}")
            if manager.has_swept():
                self._follow_sweep()

    def _what_now(self) -> str:
        if self._managed.opensm.is_running:
            return f"{self._managed.master} takes over"
        return "routes stay as they are from now on"


def _first_line(error: FabricError) -> str:
    return str(error).partition("\n")[0]
