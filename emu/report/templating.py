"""The templates of pages."""

from __future__ import annotations

import re

from jinja2 import Environment, PackageLoader, StrictUndefined

_BEFORE_A_UNIT = re.compile(r"(?<=\d) (?=%|(?:[num]?s|[KMGT]?B|[kMGT]?b/s|k?W|[A-Z]{3})\b)")
"""With the three letters of a currency."""


def environment() -> Environment:
    """Names come from users' files, so all text is escaped."""
    made = Environment(
        loader=PackageLoader("emu.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["with_units"] = _with_units
    return made


def _with_units(text: str) -> str:
    """No line ends between a number and its unit."""
    return _BEFORE_A_UNIT.sub("\u00a0", text)
