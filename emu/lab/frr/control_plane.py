"""FRR on all switches of a fabric: its daemons, its sessions, and when routes change no more."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Set

from emu.bgp.frr_conf import session_ports
from emu.lab.frr.clock import MachineClock
from emu.lab.frr.daemons import Daemons, prepare_files, require_frr
from emu.lab.frr.fib import FibWatch, OnChange
from emu.spec.route_recording import SessionChange
from topologies.graph import Topology

NS = 1_000_000_000
QUIET_NS = 600_000_000
"""Nothing more comes when no route has changed for so long although all was sent: a switch waits
for some 75 ms before it changes its routes, and so does each one on the way."""
LONG_QUIET_NS = 12 * NS
"""So long without any event when a session is not established: it will not be. A router advertises
itself every 10 s, and FRR's profile for data centers connects again after 10 s."""
SECONDS_TO_SETTLE = 60.0
"""The most for sessions to be established. FRR tries again every 10 s, some every 120."""
_SECONDS_FOR_BFD = 10.0
"""Sessions of BFD begin with those of BGP, and send a packet a second until they are up."""
_SECONDS_BETWEEN_LOOKS = 0.05
Sessions = Set[tuple[str, str]]
"""Sessions by the switch and the interface of one end."""


class ControlPlane:
    """FRR on the switches of a fabric. It runs until the process ends."""

    def __init__(
        self,
        topology: Topology,
        confs: Mapping[str, str],
        namespaces: Mapping[str, int],
        on_change: OnChange,
        clock: MachineClock,
    ) -> None:
        """`confs`: the frr.conf of each switch. `namespaces`: a process or thread in the namespace
        of each, with its interfaces. `on_change` gets each change of routes, on a thread. Raises
        HostError, FabricError, OSError."""
        require_frr()
        prepare_files()
        self._topology = topology
        self.watch = FibWatch(namespaces, on_change)
        self.daemons = {
            switch: Daemons(switch, namespace, confs[switch], clock)
            for switch, namespace in namespaces.items()
        }
        self.began_ns = time.monotonic_ns()
        for daemons in self.daemons.values():
            daemons.start_zebra()
        for daemons in self.daemons.values():
            daemons.start_others()
        for daemons in self.daemons.values():
            daemons.configure()
        self.configured = self._configured()
        """The sessions on all cables between switches, but for those that are shut down."""

    # ---- whether all is over -----------------------------------------------

    def settle_at_start(self) -> bool:
        """Waits until all sessions are established, also those of BFD, and no route changes any
        more. Returns whether that came to be. Raises FabricError if a daemon ends."""
        is_still = self.settle(time.monotonic() + SECONDS_TO_SETTLE, self.configured)
        if self._have_bfd_up(time.monotonic() + _SECONDS_FOR_BFD):
            is_still = self.settle(time.monotonic() + SECONDS_TO_SETTLE, self.configured)
        return is_still

    def settle(
        self,
        deadline_s: float,
        wanted: Sessions,
        long_quiet_ns: int = LONG_QUIET_NS,
        *,
        may_be_dead: bool = False,
    ) -> bool:
        """Waits until exactly the `wanted` sessions are established, all neighbours have told all,
        and no route changes any more; or until nothing has happened for long, if sessions fail.
        False: the deadline was first.

        Raises FabricError if a daemon ends; with `may_be_dead` not, and sessions with a switch
        without bgpd do not count."""
        since_ns = told_ns = time.monotonic_ns()
        wait_s = max(daemons.advertisement_interval_s() for daemons in self.daemons.values())
        before: dict[tuple[str, str], bool] = {}
        while time.monotonic() < deadline_s:
            now_ns = time.monotonic_ns()
            if not may_be_dead:
                for daemons in self.daemons.values():
                    daemons.refuse_dead()
            dead = self._without_bgp()
            established = {end: told for end, told in self.established().items() if end not in dead}
            if established != before:
                told_ns, before = now_ns, established
            quiet_ns = now_ns - max(since_ns, told_ns, self.watch.last_change_ns)
            is_done = established.keys() == wanted - dead and all(established.values())
            if quiet_ns > wait_s * NS + (QUIET_NS if is_done else long_quiet_ns):
                self.watch.refuse_loss()
                return True
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return False

    def _have_bfd_up(self, deadline_s: float) -> bool:
        """Waits until all sessions of BFD are up, if there are any. Returns whether there are."""
        with_bfd = [daemons for daemons in self.daemons.values() if daemons.has_bfd]
        while time.monotonic() < deadline_s and not all(one.bfd_is_up() for one in with_bfd):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return bool(with_bfd)

    # ---- sessions ----------------------------------------------------------

    def established(self) -> dict[tuple[str, str], bool]:
        """The sessions that are established now, and whether they have told all."""
        for daemons in self.daemons.values():
            daemons.log.read()
        return {
            (switch, interface): session.has_told
            for switch, daemons in self.daemons.items()
            for interface, session in daemons.log.sessions.items()
            if session.established
        }

    def _without_bgp(self) -> Sessions:
        """Both ends of the sessions of switches whose bgpd has ended."""
        gone = [
            port
            for switch, daemons in self.daemons.items()
            if "bgpd" in daemons.dead()
            for port in session_ports(self._topology, switch)
        ]
        ends = (*gone, *(self._topology.peer[port] for port in gone))
        return {(port.node, port.interface) for port in ends}

    def session_changes(self) -> Iterator[SessionChange]:
        """All changes so far, those of one switch in order of time, by time.monotonic_ns."""
        for switch, daemons in self.daemons.items():
            daemons.log.read()
            for at_ns, interface, established in daemons.log.changes:
                yield SessionChange(at_ns, switch, interface, established)

    def _configured(self) -> Sessions:
        shut = {
            port
            for switch, daemons in self.daemons.items()
            for port in session_ports(self._topology, switch)
            if daemons.has_shut_down(port.interface)
        }
        shut |= {self._topology.peer[port] for port in shut}
        return {
            (switch, port.interface)
            for switch in self.daemons
            for port in session_ports(self._topology, switch)
            if port not in shut
        }
