"""`python -m emu._build.coverage`: what the tests ran of Python and of the C core.

`make coverage` has run them before, with the core of the variant `coverage`. What they left is

    build/coverage/.coverage.*         coverage.py: lines of Python, a file for each process
    build/coverage/emu/core/**/*.gcda  gcov: lines of C, beside the objects

This prints one summary, a row for each folder, and writes build/coverage/index.html with links
to the pages of coverage.py and gcovr.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emu._build.core import CORE, COVERAGE, ROOT

FOLDER = COVERAGE.folder


@dataclass(frozen=True)
class Lines:
    """Lines with code, and those of them that ran."""

    all: int
    ran: int

    @property
    def percent(self) -> float:
        return 100 * self.ran / self.all if self.all else 100.0


def main() -> int:
    python, core = _of_python(), _of_core()
    text = _summary(python, core)
    print(text)
    page = FOLDER / "index.html"
    (ROOT / page).write_text(_page(text))
    print(f"\npages: {page}")
    return 0


def _of_python() -> dict[str, Lines]:
    """By file. Writes coverage.py's page."""
    report = FOLDER / "python.json"
    _run("coverage", "json", "--quiet", "-o", str(report))
    _run("coverage", "html", "--quiet", "-d", str(FOLDER / "python"))
    files: Mapping[str, Any] = json.loads((ROOT / report).read_text())["files"]
    return {
        path: Lines(file["summary"]["num_statements"], file["summary"]["covered_lines"])
        for path, file in files.items()
    }


def _of_core() -> dict[str, Lines]:
    """By file. Writes gcovr's page."""
    report, page = FOLDER / "core.json", FOLDER / "core"
    (ROOT / page).mkdir(exist_ok=True)
    _run(
        *("gcovr", "--root", ".", "--object-directory", str(FOLDER)),
        *("--filter", f"{CORE}/", "--gcov-ignore-parse-errors=all"),
        *("--json-summary", str(report), "--html-details", str(page / "index.html")),
        str(FOLDER),
    )
    files = json.loads((ROOT / report).read_text())["files"]
    return {file["filename"]: Lines(file["line_total"], file["line_covered"]) for file in files}


def _summary(python: Mapping[str, Lines], core: Mapping[str, Lines]) -> str:
    rows = [
        *_by_folder(python),
        ("Python, all of it", _sum(python)),
        *_by_folder(core),
        ("C core, all of it", _sum(core)),
    ]
    return "\n".join(
        [
            f"{'folder':<28}{'lines':>8}{'ran':>8}{'':>8}",
            *(f"{name:<28}{n.all:>8,}{n.ran:>8,}{n.percent:>7.1f}%" for name, n in rows),
        ]
    )


def _by_folder(files: Mapping[str, Lines]) -> Iterator[tuple[str, Lines]]:
    lines, ran = Counter[str](), Counter[str]()
    for path, counted in files.items():
        folder = "/".join(Path(path).parts[:-1][: 3 if path.startswith(str(CORE)) else 2])
        lines[folder] += counted.all
        ran[folder] += counted.ran
    return ((folder, Lines(lines[folder], ran[folder])) for folder in sorted(lines))


def _sum(files: Mapping[str, Lines]) -> Lines:
    return Lines(sum(n.all for n in files.values()), sum(n.ran for n in files.values()))


def _page(summary: str) -> str:
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>What the tests ran</title>
<h1>What the tests ran</h1>
<p><a href="python/index.html">Python, line by line</a> ·
<a href="core/index.html">C core, line by line</a></p>
<pre>{summary}</pre>
</html>
"""


def _run(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
