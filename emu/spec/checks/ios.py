"""Checks of the IOPS and the bandwidth of storage, counted as fio does."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emu.spec.checks.bounds import Bounds
from emu.spec.checks.counter import Count
from emu.spec.checks.kind import CheckKind
from emu.spec.quantities import Rate
from emu.units import format_rate

Way = Literal["read", "write"]


class OfIos(CheckKind):
    """The reads or the writes of a traffic entry."""

    traffic: str = Field(description="Name of the traffic entry, of pattern storage.")
    way: Way = Field(description="Its reads, or its writes.")


class Iops(Bounds[Count], OfIos):
    """Bounds for the I/Os that finished per second, over the run time of the entry."""

    def in_words(self, clock: str) -> str:
        bounds = self.bounds_in_words(clock, lambda iops: f"{iops:,.0f}")
        return f"{self.way} IOPS of {self.traffic} {bounds}"


class Bandwidth(Bounds[Rate], OfIos):
    """Bounds for the bits of blocks read or written per second, over the run time of the entry."""

    def in_words(self, clock: str) -> str:
        bounds = self.bounds_in_words(clock, format_rate)
        return f"{self.way} bandwidth of {self.traffic} {bounds}"
