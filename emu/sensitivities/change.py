"""A change of a fabric: a name, a kind and settings of the spec; or why it cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """Who makes such a change."""

    SETTING = "setting"
    """An operator who chose another value."""
    MISTAKE = "mistake"
    """An operator who was wrong at one place."""
    FAILURE = "failure"
    """Nobody."""


@dataclass(frozen=True)
class Change:
    """One change. Everything else stays as it is."""

    name: str
    """As `switches.ecn.kmin x 2`."""
    kind: Kind
    what: str
    """The values before and after, or the place."""
    settings: Mapping[str, Any]
    """Keys with dots and their values, as after `--set`."""


@dataclass(frozen=True)
class LeftOut:
    """A change that this fabric cannot have."""

    name: str
    kind: Kind
    reason: str
