"""`cc: swift`: a window that keeps the round trip at a target; cc_swift.c has the rules."""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, Field, model_validator

from emu.spec import references
from emu.spec.congestion_control.control import WindowControl
from emu.spec.congestion_control.registry import register
from emu.spec.notes import note
from emu.spec.quantities import Fraction, Time


@register("swift", "Swift, which acts on delay", key="swift")
class Swift(WindowControl):
    """Swift, with the names of the paper (SIGCOMM'20).

    The paper publishes few of its values. The defaults are those of the public simulator htsim for
    fabrics of 100 Gbit/s.
    """

    model_config = ConfigDict(
        json_schema_extra=note(
            why="the paper publishes few of its values; these are those that the public simulator "
            "htsim uses at 100 Gbit/s",
            source=references.SWIFT,
        )
    )

    base_target_ps: Time = Field(
        default=20_000_000,
        alias="base_target",
        gt=0,
        description="Round trip that a flow with a large window aims at.",
    )
    fs_range_ps: Time = Field(
        default=100_000_000,
        alias="fs_range",
        description="Flow scaling: the largest addition to the target delay of a flow with a "
        "small window.",
    )
    fs_min_cwnd: float = Field(
        default=0.1,
        gt=0,
        le=512,
        strict=True,
        description="Window, in packets, at which flow scaling adds the most.",
        json_schema_extra=note(unit="packets"),
    )
    fs_max_cwnd: float = Field(
        default=100.0,
        gt=0,
        le=512,
        strict=True,
        description="Window, in packets, from which flow scaling adds nothing.",
        json_schema_extra=note(unit="packets"),
    )
    ai: float = Field(
        default=1.0,
        gt=0,
        le=64,
        strict=True,
        description="Additive increase, packets each round trip.",
        json_schema_extra=note(unit="packets"),
    )
    beta: Fraction = Field(
        default=0.8,
        gt=0,
        description="Multiplicative decrease: how strongly the window shrinks "
        "for delay above the target.",
    )
    max_mdf: Fraction = Field(
        default=0.5,
        gt=0,
        lt=1,
        description="The largest share of the window that one decrease removes.",
    )
    min_cwnd: float = Field(
        default=0.01,
        ge=0.001,
        le=1,
        strict=True,
        description="Smallest window, in packets; below 1, packets are paced.",
        json_schema_extra=note(unit="packets"),
    )

    @model_validator(mode="after")
    def _scaling(self) -> Self:
        if self.fs_min_cwnd >= self.fs_max_cwnd:
            raise ValueError(
                f"fs_min_cwnd {self.fs_min_cwnd:g} is not below fs_max_cwnd {self.fs_max_cwnd:g}, "
                "so no window lies between them; lower fs_min_cwnd"
            )
        return self
