"""What measuring a check gives."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """Whether it holds, and what was measured, in words."""

    passed: bool
    measured: str
