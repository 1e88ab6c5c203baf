"""The `verify:` section: one check of a run's results per entry.

A kind of check has its model in a file beside this one, a field below, and its measurement in
`emu.report.verdict`.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from emu.spec.base import Model
from emu.spec.checks.checksums import Checksums
from emu.spec.checks.counter import Agreement, Counter
from emu.spec.checks.fairness import Fairness, Share
from emu.spec.checks.fct import FctSlowdownBounds
from emu.spec.checks.finish import Finish
from emu.spec.checks.goodput import Goodput
from emu.spec.checks.ios import Bandwidth, Iops
from emu.spec.checks.kind import CheckKind
from emu.spec.checks.latency import LatencyBounds
from emu.spec.checks.lossless import Lossless
from emu.spec.checks.marks import Marks
from emu.spec.checks.queue import QueueDepth
from emu.spec.checks.rate import DeliveryRate


class Check(Model):
    """One check. It has exactly one of the keys that name a kind."""

    lossless: Lossless | None = Field(
        default=None, description="No packet of a priority was dropped."
    )
    completed: Literal["all"] | None = Field(
        default=None, description="`all`: every message arrived, with every byte unchanged."
    )
    goodput: Goodput | None = Field(default=None, description="Bounds for the goodput of a flow.")
    rate: DeliveryRate | None = Field(
        default=None, description="Bounds for the rate of delivery in a part of the run."
    )
    finish: Finish | None = Field(
        default=None, description="A time by which flows must have finished."
    )
    latency: LatencyBounds | None = Field(
        default=None, description="Bounds for the latency of a traffic entry's requests."
    )
    fct_slowdown: FctSlowdownBounds | None = Field(
        default=None,
        description="Bounds for how many times longer messages took than in an empty fabric.",
    )
    iops: Iops | None = Field(
        default=None, description="Bounds for the I/Os of storage per second."
    )
    bandwidth: Bandwidth | None = Field(
        default=None, description="Bounds for the bandwidth of storage's reads or writes."
    )
    fairness: Fairness | None = Field(
        default=None, description="Bounds for Jain's index of the rates of flows."
    )
    share: Share | None = Field(
        default=None, description="Bounds for a flow's share of the bytes that all flows delivered."
    )
    queue: QueueDepth | None = Field(
        default=None, description="Bounds for the depth of an egress queue."
    )
    counter: Counter | None = Field(default=None, description="Bounds for a counter.")
    agreement: Agreement | None = Field(
        default=None, description="Two counters that must be equal within a tolerance."
    )
    checksums: Checksums | None = Field(
        default=None, description="Checksums in captures: none may be wrong."
    )
    marks: Marks | None = Field(
        default=None,
        description="CE marks on captured packets: as many as their probability predicts.",
    )
    fail: str | None = Field(
        default=None, description="The text of the report when the check fails."
    )

    @property
    def kind(self) -> str:
        """The key of its kind."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def what(self) -> CheckKind | None:
        """The parameters of its kind; None for a kind without parameters."""
        what = getattr(self, self.kind)
        return what if isinstance(what, CheckKind) else None

    def in_words(self, clock: str) -> str:
        """The requirement for a run on the clock of this name."""
        return "every flow completed" if self.what is None else self.what.in_words(clock)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            names = " and ".join(kinds) or "none"
            raise ValueError(f"a check has exactly one of {', '.join(KINDS)}; this has {names}")
        return self


KINDS = tuple(name for name in Check.model_fields if name != "fail")
