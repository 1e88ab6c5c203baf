"""Writes docs/reference and the schema anew: `python -m emu.explain`, in the project's folder."""

from __future__ import annotations

from pathlib import Path

from emu.explain.pages import pages
from emu.spec.schema import schema_text


def main() -> None:
    folder = Path("docs/reference")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)
    Path("topologies/emu.schema.json").write_text(schema_text())


if __name__ == "__main__":
    main()
