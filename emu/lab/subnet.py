"""InfiniBand's subnet manager beside a fabric that runs: it hears of lost links and routes anew.

    shim                      lab (this file)               ibsim            OpenSM
     a link goes down
     LinksChanged ───────────▶ pulls the cable ────────────▶ sends a trap ──▶ sweeps
     switches follow ◀─ Tables reads OpenSM's dump ◀──────────────────────────┘

A thread does it as long as the lab lives. Whatever else makes OpenSM sweep, a standby
that takes over among it, has its tables followed as well. Then path records are asked
for anew, some at a time, as a link may change meanwhile: NICs and queue pairs that come
later have their service levels, those that are there keep theirs (`emu.subnet.paths`),
`ib0` among them, and a note says what comes of it, of all levels that somebody has been told
since the NICs were all new the last time. Paths for which OpenSM has no answer, asked
three times, have no level any more, rather than one that was made for other tables.

OpenSM is not a part of the data plane: when it dies packets go on by the tables there are,
and a note says so. ibsim is what stands for the fabric in management, so the lab ends with it.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from emu.daemon.messages import Sweep
from emu.engines import ENGINES_WITH_LEVELS
from emu.errors import FabricError
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.queries import PortSnapshot
from emu.lab.ipc.routing import Converging, LinksChanged, Tables
from emu.lab.link_history import LinkHistory
from emu.lab.namespace import PRIVATE
from emu.lab.supervisor import Supervisor
from emu.spec.scenario import Spec
from emu.subnet import ManagedFabric, Subnet
from emu.subnet.diagnostics import Diagnosis, diagnose, tell_counters
from emu.subnet.manager import Pair
from emu.subnet.routing_check import approved, engine_note, kept_levels
from emu.subnet.sm_sweeps import manager_hosts, pairs_of, policy_of
from emu.subnet.subnet import PathSLs
from emu.units import PS_PER_NS
from topologies.graph import Topology

_SECONDS_BETWEEN_LOOKS = 0.25
_PATHS_AT_A_TIME = 16
_TIMES_ASKED = 3


class LiveSubnet:
    """The management of a lab's fabric, from before the fabric runs on."""

    def __init__(
        self, spec: Spec, topology: Topology, supervisor: Supervisor, *, all_hosts: bool
    ) -> None:
        """Returns after the first sweep. With `all_hosts` any host may talk to any other, else
        only those of the spec's traffic.

        Raises HostError, FabricError; also where OpenSM does not do what the spec asks for.
        """
        self._spec, self._topology = spec, topology
        hosts = manager_hosts(spec, topology)
        fabric = ManagedFabric(topology, policy_of(spec), PRIVATE / "subnet", hosts=hosts)
        self._managed = fabric.__enter__()  # it ends with the lab
        supervisor.adopt("ibsim", self._managed.simulator.pid)
        self._pairs = sorted(pairs_of(spec, everybody=all_hosts))
        self.now = approved(spec, topology, self._managed.subnet(self._pairs), self._pairs)
        """What it has decided, up to the last sweep."""
        self._first_engine = self.now.engine
        self._in_use = [self.now.levels]
        """All service levels that somebody may have."""
        self._unasked: list[Pair] = []
        self._asked: PathSLs = {}
        self._unanswered = 0
        """How often in succession path records were asked for in vain."""
        self._passing_note = ""
        self.notes = list(self.now.notes)
        """What its user should know."""
        self.sweeps: list[Sweep] = []
        """Those that links have caused: when they changed, and what tables took then."""
        self.links = LinkHistory()
        self._change = LinksChanged(0, ())
        self._changed_at = time.monotonic()
        self._running = set(hosts)
        near, self.far = socket.socketpair()
        """The shim's end of the line."""
        self._line = Channel(near)
        threading.Thread(target=self._attend, name="subnet", daemon=True).start()

    def connect(self) -> Subnet:
        """The subnet for NICs that come in place of all there were, and keep its levels."""
        self._in_use = []
        self._forget_passing_note()
        return self.join()

    def join(self) -> Subnet:
        """For one more NIC or queue pair, which comes beside the others and keeps its levels."""
        now = self.now
        if now.levels not in self._in_use:
            self._in_use.append(now.levels)
        return now

    def diagnose(
        self,
        node: str,
        command: Sequence[str],
        ports: Mapping[str, PortSnapshot],
        host_waits: Mapping[str, int],
    ) -> Diagnosis:
        """One of infiniband-diags on this host or switch; `ports`: as the shim sees them now,
        `host_waits`: PortXmitWait of hosts."""
        counters = {name: own.counters for name, own in ports.items()}
        tell_counters(self._managed.simulator, self._topology, counters, host_waits)
        return diagnose(self._managed.simulator, node, command)

    def _attend(self) -> None:
        with suppress(EOFError):
            while True:
                master = self._managed.opensm
                try:
                    self._wait_and_answer()
                    self._look_after_managers()
                    self._ask_for_levels()
                except FabricError as error:
                    if master.is_running:  # else that is the reason, and told
                        self.notes.append(str(error).partition("\n")[0])

    def _wait_and_answer(self) -> None:
        patience = 0 if self._unasked and not self._unanswered else _SECONDS_BETWEEN_LOOKS
        if self._line.has_more(patience):
            message = self._line.receive()
            if isinstance(message, Converging):
                self.links.converging(message)
            elif isinstance(message, LinksChanged):
                self._change = message
                self._changed_at = time.monotonic()
                self.links.changed(message)
                self._answer()

    def _answer(self) -> None:
        """By the sweep that the trap causes, and one more."""
        ports = self._topology.port_named
        down = frozenset(self._topology.cable[ports[name]] for name in self._change.down)
        before = self._managed.master
        changed = self._managed.pull(down)
        self._note_master(before)
        if changed and self._managed.opensm.is_running:
            self._managed.opensm.wait_for_next_sweep()
            self._tell()
            self._managed.sweep_once_more()
            self._tell_news()

    def _note_master(self, before: str) -> None:
        """Where a cable has made another of them the master."""
        master = self._managed.master
        if master == before:
            return
        if self._managed.can_manage(before):
            self.notes.append(f"OpenSM on {master} is back; {before} stands by")
        else:
            self.notes.append(f"OpenSM on {before} is cut off; {master} takes over")

    def _tell(self) -> None:
        """The tables are the answer to the last change there was."""
        lfts = self._managed.tables()
        seconds = time.monotonic() - self._changed_at
        self._line.send(Tables(lfts, self._change.at_ps, self._change.down, seconds))
        self.now = replace(self.now, lfts=lfts)
        self.sweeps.append(Sweep(self._change.at_ps // PS_PER_NS, round(seconds, 3)))
        self._note_engine()

    def _note_engine(self) -> None:
        """Where it is no longer the one there was at first."""
        before, engine = self.now.engine, self._managed.opensm.engine_used()
        self.now = replace(self.now, engine=engine)
        if engine not in (before, self._first_engine):
            self.notes.append(engine_note(self._first_engine, engine))

    def _tell_news(self) -> None:
        """Tables at once; path records may have changed though no table has."""
        if self._managed.tables() != self.now.lfts:
            self._tell()
        has_levels = self.now.engine in ENGINES_WITH_LEVELS
        self._unasked, self._asked = self._pairs if has_levels else [], {}
        self._unanswered = 0
        if not has_levels:
            self.now = replace(self.now, levels={})
            self._note_kept_levels()

    def _ask_for_levels(self) -> None:
        """Of some paths; once more with the next look where OpenSM does not answer."""
        if not self._unasked:
            return
        some = self._unasked[:_PATHS_AT_A_TIME]
        try:
            answer = self._managed.levels(some)
        except FabricError as error:
            self._unanswered += 1
            if not self._managed.opensm.is_running:
                self._have_levels()  # and another note says that it died
            elif self._unanswered == _TIMES_ASKED:
                self.notes.append(self._missing_levels(error))
                self._have_levels()
            return
        self._unanswered = 0
        for src, levels in answer.items():
            self._asked.setdefault(src, {}).update(levels)
        self._unasked = self._unasked[_PATHS_AT_A_TIME:]
        if not self._unasked:
            self._have_levels()

    def _missing_levels(self, error: FabricError) -> str:
        said, _, _ = str(error).partition("\n")
        return (
            f"after a sweep {len(self._unasked)} of {len(self._pairs)} paths have no service "
            f"level, and who connects then uses hosts.nic.sl: {said}"
        )

    def _have_levels(self) -> None:
        """Those that were answered; none that was made for the tables before."""
        self._unasked = []
        self.now = replace(self.now, levels=self._asked)
        self._note_kept_levels()

    def _note_kept_levels(self) -> None:
        """In place of the note before, but where that told of a circle of credit."""
        self._forget_passing_note()
        in_use = [levels for levels in self._in_use if levels]
        if not in_use:
            return
        left = self._managed.paths_left(self._pairs)
        kept = kept_levels(self._spec, self._topology, in_use, self.now, left)
        if kept and kept.note not in self.notes:
            self.notes.append(kept.note)
            self._passing_note = "" if kept.circle else kept.note

    def _forget_passing_note(self) -> None:
        with suppress(ValueError):  # there is none
            self.notes.remove(self._passing_note)

    def _look_after_managers(self) -> None:
        """Those that have died, and sweeps that no link has caused."""
        for host, manager in self._managed.managers.items():
            if host in self._running and not manager.is_running:
                self._running.remove(host)
                self.notes.append(f"OpenSM on {host} died; {self._what_now()}")
            if manager.has_swept():
                self._tell_news()

    def _what_now(self) -> str:
        if self._managed.opensm.is_running:
            return f"{self._managed.master} takes over"
        return "routes stay as they are from now on"
