"""The faults of hosts' NICs in a background lab. They outlive the NIC process.

Each workload has a NIC process of its own. A fault set by a user lasts through several workloads,
until it is over or cleared; without NICs it waits for the next ones. The spec's faults belong to
its traffic: they begin again with every workload, at their time in it.

Times are picoseconds of emulated time since the lab came up, unless stated otherwise. A NIC process
counts from its own start, its epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from emu.lab.ipc.codec import Json
from emu.lab.ipc.queries import FaultStatus
from emu.measure.lab_snapshot import fault_state
from emu.measure.records import FaultRecord
from emu.spec.fault import Fault, fault_names
from emu.spec.fault.kind import LostLinks, OnHost, OnLine
from emu.spec.scenario import Spec

_COUNTS = ("packets_seen", "hits", "packets_dropped")


@dataclass
class _Kept:
    """A fault, and its counts in earlier NICs."""

    name: str
    fault: Fault
    number: int
    """Its place among the spec's faults, for its random numbers."""
    of_traffic: bool
    """Whether the fault is the spec's; its `at` is then a time in the workload."""
    at_ps: int | None = None
    """When the fault begins; None: with the next NICs, or traffic."""
    before: Counter[str] = field(default_factory=Counter)
    """The fault's counts in NICs that have ended."""

    @property
    def end_ps(self) -> int | None:
        if self.at_ps is None or self.fault.for_ps is None:
            return None
        return self.at_ps + self.fault.for_ps

    def is_over(self, now_ps: int) -> bool:
        return self.end_ps is not None and self.end_ps <= now_ps

    def for_nics(self, epoch_ps: int) -> Json:
        """The rest of the fault, as in the spec of NICs with this epoch."""
        assert self.at_ps is not None
        at_ps = max(self.at_ps, epoch_ps)
        left_ps = None if self.end_ps is None else self.end_ps - at_ps
        own = {"name": self.name, "at_ps": at_ps - epoch_ps, "for_ps": left_ps}
        return self.fault.model_copy(update=own).to_mapping()

    def status(self, now_ps: int, counts: Mapping[str, int]) -> FaultStatus:
        so_far = self.before + Counter(counts)
        at_ns = None if self.at_ps is None else self.at_ps // 1000
        end_ns = None if self.end_ps is None else self.end_ps // 1000
        return FaultStatus(
            name=self.name,
            kind=self.fault.kind,
            place=self.fault.what.place,
            at_ns=at_ns,
            end_ns=end_ns,
            **{count: so_far[count] for count in _COUNTS},
            state=fault_state(at_ns, end_ns, now_ps // 1000),
        )


class NicFaults:
    """The faults that are set, and their counts. Knows nothing of processes."""

    def __init__(self, spec: Spec, *, ends_of_cables: bool = False) -> None:
        """`ends_of_cables`: whether NICs also have the faults of hosts' cables, at their ends, as
        on the exact clock."""
        self._spec, self._topology = spec, spec.topology.build()
        self._ends_of_cables = ends_of_cables
        faults = zip(fault_names(spec.faults), spec.faults, strict=True)
        self._kept = {
            name: self._of_spec(name, fault, number)
            for number, (name, fault) in enumerate(faults)
            if fault.what.applies(spec) and self.may_have(fault)
        }

    @staticmethod
    def _of_spec(name: str, fault: Fault, number: int) -> _Kept:
        of_traffic = isinstance(fault.what, OnHost)
        return _Kept(name, fault, number, of_traffic, None if of_traffic else fault.at_ps)

    def may_have(self, fault: Fault) -> bool:
        """Whether a fault is, at least in part, one of NICs."""
        if isinstance(fault.what, OnHost):
            return True
        if not self._ends_of_cables or not isinstance(fault.what, OnLine | LostLinks):
            return False
        topology = self._topology
        ports = fault.what.ports(self._spec, topology)
        ends = [*ports, *(topology.peer[port] for port in ports)]
        if isinstance(fault.what, OnLine):
            ends = [topology.peer[port] for port in ports]
        return any(port.node in topology.host for port in ends)

    def __contains__(self, name: str) -> bool:
        return name in self._kept

    def comes_again(self, name: str) -> bool:
        """Whether the fault begins again with the next workload."""
        return name in self._kept and self._kept[name].of_traffic

    def set(self, name: str, fault: Fault, at_ps: int | None) -> None:
        """Adds a fault. `at_ps`: when it began in the NICs; None: there are no NICs."""
        self._kept[name] = _Kept(name, fault, 0, of_traffic=False, at_ps=at_ps)

    def clear(self, name: str) -> None:
        del self._kept[name]

    def begin(self, epoch_ps: int, *, with_traffic: bool) -> list[Json]:
        """The faults of NICs that begin, with traffic or idle, as in a spec."""
        for kept in self._kept.values():
            if kept.of_traffic:
                kept.at_ps = epoch_ps + kept.fault.at_ps if with_traffic else None
            elif kept.at_ps is None:
                kept.at_ps = epoch_ps
        return [
            kept.for_nics(epoch_ps)
            for kept in self._kept.values()
            if kept.at_ps is not None and not kept.is_over(epoch_ps)
        ]

    def numbers(self, faults: Iterable[Json]) -> list[int]:
        """The places among the spec's faults of those that `begin` returned."""
        return [self._kept[fault["name"]].number for fault in faults]

    def end(self, records: Iterable[FaultStatus | FaultRecord]) -> None:
        """Adds the counts of NICs that end. `records`: of the faults in them."""
        for record in records:
            if record.name in self._kept:
                self._kept[record.name].before.update(_counts(record))
        for kept in self._kept.values():
            if kept.of_traffic:
                kept.at_ps = None

    def status(self, now_ps: int, records: Iterable[FaultStatus]) -> list[FaultStatus]:
        """The status of each fault. `records`: of the faults in the present NICs."""
        counts = {record.name: _counts(record) for record in records}
        return [kept.status(now_ps, counts.get(name, {})) for name, kept in self._kept.items()]


def _counts(record: FaultStatus | FaultRecord) -> dict[str, int]:
    return {count: getattr(record, count) for count in _COUNTS}
