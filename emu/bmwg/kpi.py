"""What a KPI is, what a trial gives for it, and the drafts' reference targets.

    Kpi         name, unit, definition and source; the table of the report that it belongs to
    Figure      one value of a trial: of which KPI, and of what (a traffic entry, a port, a switch)
    Undefined   a KPI that the trial does not define, and the reason

A KPI that a workload does not define has no value, and never the value 0: an incast has no bus
bandwidth, and a fabric without a failed link has no time to redistribute traffic.

The drafts call every target non-normative, and forbid its use as a pass or fail threshold. So a
target gives a mark beside the figure, and no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from emu.report.run_figures import written

TERM = "draft-calabria-bmwg-ai-fabric-terminology"
TRAIN = "draft-calabria-bmwg-ai-fabric-training-bench"
INFER = "draft-calabria-bmwg-ai-fabric-inference-bench"
DRAFTS = (TERM, TRAIN, INFER)
OF_EMU = "not in the drafts"
"""The source of a figure that stands in for one of the drafts on InfiniBand."""


class Table(StrEnum):
    """The tables of the report. Primary, secondary and health are the drafts' tiers of KPIs; the
    others have the drafts' tests of the same names."""

    PRIMARY = "Primary KPIs"
    SECONDARY = "Secondary KPIs"
    LATENCY = "Latency characterization"
    HEALTH = "Fabric health indicators"
    FAILOVER = "Link failure convergence"
    INTERFERENCE = "Multi-tenant interference"


class Unit(StrEnum):
    """The units of figures, as the JSON document names them."""

    NS = "ns"
    """Of emulated time."""
    BYTES = "bytes"
    BYTES_PER_S = "bytes/s"
    BPS = "bit/s"
    RATIO = "ratio"
    PERCENT = "%"
    PPM = "ppm"
    PER_S = "1/s"
    COUNT = "count"

    def write(self, value: float) -> str:
        """A figure for people: `175 GB/s`, `1.129 ms`, `0.9987`."""
        if self is Unit.BYTES_PER_S:
            return f"{written(value, 'bytes')}/s"
        if self in _SHORT:
            return written(value, _SHORT[self])
        ending = {Unit.PERCENT: " %", Unit.PPM: " ppm", Unit.PER_S: " /s"}.get(self, "")
        return f"{written(value, '')}{ending}"


_SHORT = {Unit.NS: "ns", Unit.BYTES: "bytes", Unit.BPS: "bps"}
"""The units that figures of runs have, too, by their names there."""


@dataclass(frozen=True)
class Target:
    """A reference target of the drafts. It is not normative: a mark, and no verdict."""

    best: float
    acceptable: float | None = None
    """A second, wider limit."""
    more_is_better: bool = False

    def mark(self, value: float, write: Callable[[float], str] = "{:g}".format) -> str:
        """The narrowest limit that the value keeps, or the widest one that it misses; `write`
        writes a limit."""
        limits = [self.best] if self.acceptable is None else [self.best, self.acceptable]
        kept, missed = ("at least", "below") if self.more_is_better else ("at most", "above")
        for limit in limits:
            if value >= limit if self.more_is_better else value <= limit:
                return f"{kept} {write(limit)}"
        return f"{missed} {write(limits[-1])}"

    def is_met(self, value: float) -> bool:
        """Whether the value keeps the narrower limit."""
        return value >= self.best if self.more_is_better else value <= self.best


@dataclass(frozen=True)
class Kpi:
    """A key performance indicator of the drafts."""

    key: str
    """Its name in the JSON document."""
    name: str
    table: Table
    unit: Unit
    definition: str
    source: str
    by: str = ""
    """What a figure beside that of the whole fabric is of: `port and priority`. Such figures have a
    table of their own."""
    leaves_out_zeros: bool = False
    """Whether such figures are left out where they are 0."""
    target: Target | None = None


@dataclass(frozen=True)
class Figure:
    """A value of a KPI in one trial."""

    kpi: Kpi
    value: float
    of: str = ""
    """A traffic entry, a port, a switch; empty for the whole fabric."""
    detail: str = ""
    """What the value was computed from, in words."""

    @property
    def place(self) -> tuple[str, str]:
        """The same in every trial of one spec."""
        return self.kpi.key, self.of


@dataclass(frozen=True)
class Undefined:
    """A KPI that a trial does not define."""

    kpi: Kpi
    reason: str
    of: str = ""

    @property
    def place(self) -> tuple[str, str]:
        return self.kpi.key, self.of


Measured = Iterator[Figure | Undefined]
"""What a family of KPIs gives for a trial."""
