"""`hosts.cpu`: what it costs in emulated time that programs compute, on the exact clock.

cpu: free           nothing: emulated time stands meanwhile
cpu: measured x 2   twice the processor time that they have used
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from emu.spec.notes import note

FREE = 0.0
_MEASURED = re.compile(r"measured(?: x ([0-9]{1,6}(?:\.[0-9]{1,6})?))?")


def _factor(value: object) -> float:
    if value == FREE or value == "free":
        return FREE
    match = _MEASURED.fullmatch(str(value))
    factor = float(match[1] or 1) if match else FREE
    if factor == FREE:
        raise ValueError(
            f"{value!r} is not understood; write `free`, or `measured x FACTOR` with a factor "
            "above 0, e.g. measured x 2"
        )
    return factor


def _write(factor: float) -> str:
    return f"measured x {factor:g}" if factor else "free"


ProcessorTime = Annotated[
    float,
    BeforeValidator(_factor),
    PlainSerializer(_write, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "examples": ["free", "measured", "measured x 2"],
            **note(unit="emulated time for each processor time"),
        }
    ),
]
"""The factor from processor time to emulated time; 0: computing costs nothing."""
