"""The keys of a NIC that choose a congestion control and set the parameters of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import Field, create_model

from emu.spec.base import Model
from emu.spec.congestion_control import CONTROLS, Control
from emu.spec.notes import note

C = TypeVar("C", bound=Control)

if TYPE_CHECKING:
    ControlName = str
else:
    ControlName = Literal[tuple(CONTROLS)]
"""The type checker cannot know the names."""


class _Keys(Model):
    cc: ControlName = Field(
        default="none",
        description="Congestion control. "
        + " ".join(f"{entry.name}: {entry.title}." for entry in CONTROLS.values()),
        json_schema_extra=note(
            why="without congestion control you see the behaviour of the fabric alone"
        ),
    )

    def control(self, cc: str) -> Control:
        """The parameters of a congestion control, whether this NIC uses it or not."""
        key = CONTROLS[cc].key
        control: Control = Control() if key is None else getattr(self, key)
        return control

    def parameters_of(self, model: type[C]) -> C:
        """The parameters of the congestion control that has this model."""
        cc = next(entry.name for entry in CONTROLS.values() if entry.model is model)
        control = self.control(cc)
        assert isinstance(control, model)
        return control


if TYPE_CHECKING:

    class CongestionControlKeys(_Keys):
        """`cc`, and a key with the parameters of each control."""

else:
    _sections: dict[str, Any] = {
        entry.key: (
            entry.model,
            Field(default=entry.model(), description=f"Parameters of cc: {entry.name}."),
        )
        for entry in CONTROLS.values()
        if entry.key is not None
    }
    CongestionControlKeys = create_model(
        "CongestionControlKeys", __base__=_Keys, __module__=__name__, **_sections
    )
