"""Prints one line for each file that the shipped specs produce on the virtual clock: its
SHA-256 and its name.

A change that only moves or renames code must leave every line as it was:

    python tests/fingerprints.py before > before.txt
    ... change the code ...
    python tests/fingerprints.py after > after.txt
    diff before.txt after.txt

The argument is a folder for the runs' output. Summaries, comparisons, series and captures
are hashed. Pages are not: they hold prose. The time that a run took is left out.
"""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ruamel.yaml import YAML

_TOPOLOGIES = Path(__file__).resolve().parents[1] / "topologies"
_WALL_TIME = re.compile(rb'"wall_seconds": [^,\n]*')
_PROSE = {".html"}


def main(out: Path) -> None:
    specs = sorted(_TOPOLOGIES.rglob("*.emu.yml"))
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        for lines in workers.map(lambda spec: list(_fingerprints(spec, out)), specs):
            print(*lines, sep="\n", flush=True)


def _fingerprints(spec: Path, out: Path) -> Iterator[str]:
    folder = out / spec.relative_to(_TOPOLOGIES)
    command = "compare" if "compare" in YAML(typ="safe").load(spec) else "run"
    emu = [sys.executable, "-m", "emu.cli.main", command, str(spec)]
    run = subprocess.run(
        [*emu, "--clock", "virtual", "--quiet", "--out", str(folder)],
        capture_output=True,
        text=True,
    )
    # A failed check or an unfinished flow gives exit code 1, and the files are written.
    if run.returncode > 1:
        yield f"none  {spec.relative_to(_TOPOLOGIES)}: {run.stderr.strip()}"
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        if file.suffix not in _PROSE:
            content = _WALL_TIME.sub(b"", file.read_bytes())
            yield f"{hashlib.sha256(content).hexdigest()}  {file.relative_to(out)}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    main(Path(sys.argv[1]))
