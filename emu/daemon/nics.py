"""The NIC processes of an interactive lab, one after the other, and the faults in them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from emu.daemon.lab_clock import LabClock
from emu.daemon.latest_counters import Copies, LatestCounters
from emu.daemon.nic_faults import NicFaults
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import Query
from emu.lab.ipc.messages import Start
from emu.lab.ipc.queries import (
    ClearFault,
    CountPrograms,
    FaultList,
    FaultStatus,
    ListFaults,
    ProgramCount,
    SetFault,
)
from emu.lab.ipc.setup import SetUpNics
from emu.lab.nic_process import NicProcess, added, rows_of, set_up_nics, waits_on
from emu.lab.session import Programs, Session
from emu.lab.supervisor import Supervisor
from emu.measure.records import FaultRecord
from emu.measure.seqlock import Row, Rows
from emu.spec.fault import Fault
from emu.spec.fault.kind import OnHost
from emu.units import PS_PER_NS

NO_PROGRAMS = ProgramCount(by_host={}, stopped={})


def prepare(
    supervisor: Supervisor,
    setup: SetUpNics,
    lab: str,
    files: Sequence[int] = (),
    program: Sequence[str] = Programs().rnic,
) -> NicProcess:
    """Starts a NIC process for this lab. It is ready to start. `files`: of its set-up."""
    channel = supervisor.spawn("the NIC process", program)
    with supervisor.needed(channel):
        return set_up_nics(channel, setup, lab, files)


@contextmanager
def needed(supervisor: Supervisor, process: NicProcess) -> Iterator[None]:
    """Discards a NIC process and closes its files if the body fails."""
    with supervisor.needed(process.channel):
        try:
            yield
        except Exception:
            process.rpc.close()
            process.close_counters()
            raise


class Nics:
    """The present NIC process, if there is one. Any thread may call it."""

    def __init__(self, session: Session, supervisor: Supervisor, clock: LabClock) -> None:
        self._supervisor = supervisor
        self._clock = clock
        self._changing = threading.RLock()
        self._process = session.nics  # idle NICs for IP over InfiniBand
        self._works = self._process is not None
        self._with_traffic = False
        self._serves_programs = False
        self._counted: Rows = {}
        """The rows of hosts, summed over all NICs that have ended."""
        self._on_end: Callable[[], None] = lambda: None
        self._epoch_ps = 0
        self._faults = NicFaults(session.spec, ends_of_cables=clock.clock.is_exact)

    def begin(
        self,
        process: NicProcess,
        *others: Channel,
        with_traffic: bool,
        endless: bool = False,
        files: Sequence[int] = (),
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Ends the present NICs, and starts these and `others`, which run with them. `files`: of
        their set-up. `endless`: no workload ends them. `on_end` is called when they have ended."""
        with self._changing:
            self.end_present()
            at_ns, self._epoch_ps = self._clock.begin(files, endless=endless)
            self._on_end = on_end
            self._process, self._works, self._with_traffic = process, True, with_traffic
            self._serves_programs = endless
            faults = self._faults.begin(self._epoch_ps, with_traffic=with_traffic)
            numbers = self._faults.numbers(faults)
            process.channel.send(Start(at_ns, tuple(faults), tuple(numbers)))
            for channel in others:
                channel.send(Start(at_ns))

    def workload_over(self, process: NicProcess, records: Iterable[FaultRecord]) -> None:
        """Notes that a workload is over. `records`: of the faults in its NICs."""
        with self._changing:
            if self._works and process is self._process:
                self._works = False
                self._faults.end(records)

    def end_present(self) -> None:
        """Ends the present NICs, if there are any.

        If they do not answer, they are ended, too, without the counts of their faults, and
        FabricError is raised.
        """
        with self._changing:
            if self._process is None:
                return
            records: tuple[FaultStatus, ...] = ()
            try:
                records = self._ask(ListFaults())
            finally:
                if self._works:
                    self._faults.end(records)
                self._end(self._process)

    def _end(self, process: NicProcess) -> None:
        self._supervisor.end_process(process.pid)
        self._counted = {
            host: added(self._counted.get(host, {}), row) for host, row in rows_of(process).items()
        }
        process.rpc.close()
        if not self._with_traffic:
            process.close_counters()  # a workload's stay open, for snapshots
            process.channel.close()  # a workload's thread closes its own
        self._process, self._works = None, False
        self._on_end()

    @property
    def serve_programs(self) -> bool:
        """Whether the present NICs are those of programs."""
        return self._process is not None and self._serves_programs

    def programs(self) -> ProgramCount:
        """How many verbs programs use the NICs of hosts."""
        with self._changing:
            if self._process is None or not self.serve_programs:
                return NO_PROGRAMS
            try:
                return self._process.rpc.ask(CountPrograms())
            except EOFError:
                return NO_PROGRAMS

    def copy_counters(self, latest: LatestCounters) -> Copies:
        """Open files with the counters of the NICs that serve programs, or else the latest ones of
        a workload. Raises OSError."""
        with self._changing:
            return latest.copy(self._process if self.serve_programs else None)

    def host_waits(self) -> dict[str, int]:
        """PortXmitWait of each host, the sum over all its NICs so far."""
        with self._changing:
            now = waits_on(rows_of(self._process))
            return dict(Counter(waits_on(self._counted)) + Counter(now))

    def row_of(self, host: str) -> Row:
        """The counters of a host and its port, summed over all its NICs so far; none before the
        first."""
        with self._changing:
            now = self._process.hosts.read_row(host) if self._process else {}
            return added(self._counted.get(host, {}), now)

    # ---- faults ------------------------------------------------------------

    def faults(self) -> list[FaultStatus]:
        """All faults of present and of later NICs."""
        with self._changing:
            records = self._ask(ListFaults())
            return self._faults.status(self._clock.now().now_ps, records)

    def has_fault(self, name: str) -> bool:
        return name in self._faults

    def may_have(self, fault: Fault) -> bool:
        """Whether a fault is, at least in part, one of NICs."""
        return self._faults.may_have(fault)

    def fault_comes_again(self, name: str) -> bool:
        """Whether a fault is the spec's, so that it begins again with every workload."""
        return self._faults.comes_again(name)

    def set_fault(self, name: str, fault: Fault) -> None:
        """Sets a fault, which begins now, or with the next NICs."""
        with self._changing:
            records = self._ask(SetFault(name, fault.to_mapping()))
            begun_ns = [one.at_ns for one in records if one.name == name and one.at_ns is not None]
            at_ps = self._epoch_ps + begun_ns[0] * PS_PER_NS if begun_ns else None
            if at_ps is None and not isinstance(fault.what, OnHost):
                at_ps = self._clock.now().now_ps
            self._faults.set(name, fault, at_ps)

    def clear_fault(self, name: str) -> None:
        with self._changing:
            self._ask(ClearFault(name))
            self._faults.clear(name)

    def _ask(self, query: Query[FaultList]) -> tuple[FaultStatus, ...]:
        """Sends a query to the running NICs. Returns their faults; none if no NICs run."""
        if self._process is None or not self._works:
            return ()
        try:
            return self._process.rpc.ask(query).faults
        except EOFError:  # their workload has just ended
            return ()
