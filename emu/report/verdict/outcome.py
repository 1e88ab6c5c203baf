"""The outcome of measuring one check."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """Whether the check passed, and the measured value in words."""

    passed: bool
    measured: str
