"""The `about:` section: the result that a spec demonstrates, for pages that list results."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from emu.clocks import ClockName
from emu.spec.base import Model
from emu.spec.notes import note
from emu.spec.quantities import named_like

ResultId = Annotated[
    str, named_like("[A-Za-z][A-Za-z0-9-]{0,15}", "a letter, then letters, digits and -")
]


class About(Model):
    """The result that the spec demonstrates, and its source."""

    id: ResultId = Field(description="Short name of the result, e.g. R1.")
    title: str = Field(description="The result in a sentence.")
    expected: str = Field(description="The expected outcome, with its numbers.")
    source: str = Field(description="Who measured or derived it, and where.")
    clocks: tuple[ClockName, ...] = Field(
        default=("virtual", "exact", "real"),
        min_length=1,
        description="The clocks on which `emu results` runs the spec: only [virtual] where "
        "a lab would take too long.",
        json_schema_extra=note(why="a result should hold on every clock"),
    )
    plot: Literal["queues", "completion", "fct", "rates", "waiting", "load"] = Field(
        default="rates",
        description="The picture that shows the result.",
        json_schema_extra=note(why="rates over time show most effects"),
    )
    hosts: (
        Literal["topology.hosts_per_leaf", "topology.hosts_per_side", "topology.hosts_per_switch"]
        | None
    ) = Field(
        default=None,
        description="The key whose number may be halved or doubled without changing the result; "
        "`emu results --hosts` runs those variants.",
    )
    one_size: str | None = Field(
        default=None,
        description="Instead of `hosts`: why the result only holds for this number of hosts.",
    )
    cure: str | None = Field(
        default=None, description="The setting that removes a bad effect, and the reason."
    )

    @model_validator(mode="after")
    def _one_size_or_several(self) -> Self:
        if self.hosts and self.one_size:
            raise ValueError(
                "hosts means that the result holds for other numbers of hosts, and one_size why it "
                "does not; keep one of them"
            )
        return self
