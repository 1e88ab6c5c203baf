"""Writes docs/reference and the schema anew: `python -m emu.reference`, in the project's folder."""

from __future__ import annotations

from pathlib import Path

from emu.output_dir import make_folder, write_text
from emu.reference import pages
from emu.spec.schema import schema_text


def main() -> None:
    folder = Path("docs/reference")
    make_folder(folder)
    for name, text in pages().items():
        write_text(folder / name, text)
    write_text(Path("topologies/emu.schema.json"), schema_text())


if __name__ == "__main__":
    main()
