"""Writes and prints a benchmark report.

OUT/bench-report.html  bench-report.json   and a folder as of `emu run` for each run: run,
                                           alone-NAME, without-lost-links; with several seeds,
                                           in seed-N
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from emu.bmwg.conditions import anomalies_in_words, deviations, sentences
from emu.bmwg.document import document
from emu.bmwg.iterations import Bench
from emu.bmwg.page import bench_page
from emu.bmwg.tables import (
    identification_table,
    place_tables,
    result_tables,
    undefined_table,
    workload_table,
)
from emu.output_dir import write_text, writing_into
from emu.report.summary import to_json
from emu.report.text import print_tables

PAGE_FILE = "bench-report.html"
DOCUMENT_FILE = "bench-report.json"
TERMINAL_ROWS = 8
"""The most rows of a table by port, priority or switch in the terminal."""


def write_bench(bench: Bench, out: Path) -> dict[str, Path]:
    """Writes page and document. Returns the path of each file by its kind. Raises EmuError."""
    files = {"page": out / PAGE_FILE, "document": out / DOCUMENT_FILE, "runs": out}
    with writing_into(out):
        write_text(files["page"], bench_page(bench))
        write_text(files["document"], bench_document(bench))
    return files


def bench_document(bench: Bench) -> str:
    """The JSON document, the same as in its file."""
    return to_json(document(bench))


def print_bench(bench: Bench, files: dict[str, Path], stream: TextIO) -> None:
    """Prints the report but for the settings, definitions and pictures, which the page has."""
    print_tables(
        f"{bench.name}: benchmark report",
        _head(bench),
        (
            identification_table(bench),
            workload_table(bench),
            *result_tables(bench),
            *place_tables(bench, TERMINAL_ROWS),
            undefined_table(bench),
        ),
        files,
        stream,
    )


def _head(bench: Bench) -> Iterator[str]:
    yield from sentences(bench)
    for sentence in anomalies_in_words(bench):
        yield f"Anomaly: {sentence}"
    for sentence in deviations(bench):
        yield f"Deviation: {sentence}"
