"""The rule that a number has no leading zero."""

from __future__ import annotations


def leading_zero(digits: str) -> str:
    """The error for a number that begins with 0."""
    return (
        f"{digits} begins with 0, which some programs read as octal; write {int(digits)} for the "
        "decimal number"
    )
