"""Numbers as people write them."""

from __future__ import annotations


def leading_zero(digits: str) -> str:
    """Why a number may not begin with 0."""
    return (
        f"{digits} begins with 0, which some programs read as octal; write {int(digits)} for the "
        "decimal number"
    )
