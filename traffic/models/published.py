"""Models by name, with the sizes that their publishers state: `llama-3-70b`.

The table is `published.txt` beside this file. Names are lower-case and end in the number of
parameters. Other versions of a family, such as those that follow instructions, have the same sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from traffic.models.transformer import Transformer


@dataclass(frozen=True)
class Published:
    """A model's sizes, and the public document that states them."""

    sizes: Transformer
    source: str


@cache
def published() -> dict[str, Published]:
    """All models, by name."""
    text = files(__package__).joinpath("published.txt").read_text("utf-8")
    head, *rows = (line for line in text.splitlines() if not line.startswith("#"))
    columns = head.split()
    cells = (dict(zip(columns, row.split(maxsplit=len(columns) - 1), strict=True)) for row in rows)
    return {row["model"]: Published(_sizes(row), row["source"]) for row in cells}


def _sizes(row: dict[str, str]) -> Transformer:
    return Transformer(
        gated=row["kind"] == "gated",
        tied=row["output"] == "tied",
        **{name: int(row[name]) for name in _NUMBERS},
    )


_NUMBERS = (
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "head_size",
    "ffn",
    "vocabulary",
    "experts",
    "top_k",
)
