"""Faults of hosts' NICs, as a standing lab knows them: they outlive the process of the NICs.

NICs come and go with traffic. A fault that is set lasts from one workload to the next, until
it is over or cleared; one that is set while there are no NICs waits for them. The spec's
faults belong to its traffic: they begin with every workload anew, in their time in it.

All times are the lab's, in picoseconds since it came up, where not said otherwise: a
process of NICs counts from its own beginning, its epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from emu.lab.ipc.codec import Json
from emu.lab.ipc.queries import FaultStatus
from emu.measure.lab_snapshot import fault_state
from emu.measure.recording import FaultRecord
from emu.spec.fault import Fault, fault_names
from emu.spec.fault.kind import OnHost
from emu.spec.scenario import Spec

_COUNTS = ("packets_seen", "hits", "packets_dropped")


@dataclass
class _Kept:
    """One fault."""

    name: str
    fault: Fault
    of_traffic: bool
    """Whether it is the spec's; its `at` is then a time in the workload."""
    at_ps: int | None = None
    """When it begins; None: when there are NICs, or traffic."""
    before: Counter[str] = field(default_factory=Counter)
    """What it did in NICs that are gone."""

    @property
    def end_ps(self) -> int | None:
        if self.at_ps is None or self.fault.for_ps is None:
            return None
        return self.at_ps + self.fault.for_ps

    def is_over(self, now_ps: int) -> bool:
        return self.end_ps is not None and self.end_ps <= now_ps

    def for_nics(self, epoch_ps: int) -> Json:
        """What is left of it, as in the spec of NICs with this epoch."""
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
    """Knows what is set and what it did, and nothing of processes."""

    def __init__(self, spec: Spec) -> None:
        self._kept = {
            name: _Kept(name, fault, of_traffic=True)
            for name, fault in zip(fault_names(spec.faults), spec.faults, strict=True)
            if isinstance(fault.what, OnHost) and fault.what.applies(spec)
        }

    def __contains__(self, name: str) -> bool:
        return name in self._kept

    def comes_again(self, name: str) -> bool:
        """With the next workload, though it may be over in this one."""
        return name in self._kept and self._kept[name].of_traffic

    def set(self, name: str, fault: Fault, at_ps: int | None) -> None:
        """`at_ps`: when NICs began with it; None: there are none."""
        self._kept[name] = _Kept(name, fault, of_traffic=False, at_ps=at_ps)

    def clear(self, name: str) -> None:
        del self._kept[name]

    def begin(self, epoch_ps: int, *, with_traffic: bool) -> list[Json]:
        """NICs begin, with traffic or idle: their faults, as in a spec."""
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

    def end(self, records: Iterable[FaultStatus | FaultRecord]) -> None:
        """NICs end. `records`: what the faults did in them."""
        for record in records:
            if record.name in self._kept:
                self._kept[record.name].before.update(_counts(record))
        for kept in self._kept.values():
            if kept.of_traffic:
                kept.at_ps = None

    def status(self, now_ps: int, records: Iterable[FaultStatus]) -> list[FaultStatus]:
        """Of each fault; `records`: as the NICs have them now."""
        counts = {record.name: _counts(record) for record in records}
        return [kept.status(now_ps, counts.get(name, {})) for name, kept in self._kept.items()]


def _counts(record: FaultStatus | FaultRecord) -> dict[str, int]:
    return {count: getattr(record, count) for count in _COUNTS}
