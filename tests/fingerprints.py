"""Prints one line for each file that the shipped specs produce: its SHA-256 and its name.

A change that only moves or renames code must leave every line as it was:

    python tests/fingerprints.py before > before.txt
    ... change the code ...
    python tests/fingerprints.py after > after.txt
    diff before.txt after.txt

So must any number of threads and of ranks, and the exact clock:

    python tests/fingerprints.py three --clock virtual --threads 3
    python tests/fingerprints.py four --ranks 4 --clock virtual
    python tests/fingerprints.py exact --clock exact

The first argument is a folder for the runs' output. Summaries, comparisons, series and captures
are hashed. Pages are not: they hold prose. What names the clock, what forwarded the packets, and
the time that a run took are left out.
"""

import argparse
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
_MAY_DIFFER = re.compile(rb'"(wall_seconds|clock|plane|marker)": [^,\n]*')
_PROSE = {".html"}


def main(out: Path, ranks: int, options: list[str]) -> None:
    """`options` are for `emu`."""
    emu = [sys.executable, "-m", "emu.cli.main"]
    if ranks:
        polite = ["--oversubscribe", "--allow-run-as-root", "--mca", "mpi_yield_when_idle", "1"]
        emu = ["mpirun", "-n", str(ranks), *polite, *emu]
    specs = sorted(_TOPOLOGIES.rglob("*.emu.yml"))
    with ThreadPoolExecutor(1 if ranks else os.cpu_count()) as workers:
        for lines in workers.map(lambda spec: list(_fingerprints(emu, spec, out, options)), specs):
            print(*lines, sep="\n", flush=True)


def _fingerprints(emu: list[str], spec: Path, out: Path, options: list[str]) -> Iterator[str]:
    folder = out / spec.relative_to(_TOPOLOGIES)
    command = "compare" if "compare" in YAML(typ="safe").load(spec) else "run"
    run = subprocess.run(
        [*emu, command, str(spec), *options, "--quiet", "--out", str(folder)],
        capture_output=True,
        text=True,
    )
    # A failed check or an unfinished flow gives exit code 1, and the files are written.
    if run.returncode > 1 or not folder.exists():
        yield f"none  {spec.relative_to(_TOPOLOGIES)}: {run.stderr.strip()}"
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        if file.suffix not in _PROSE:
            content = _MAY_DIFFER.sub(b"", file.read_bytes())
            yield f"{hashlib.sha256(content).hexdigest()}  {file.relative_to(out)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("out", type=Path, metavar="FOLDER")
    parser.add_argument("--ranks", type=int, default=0, help="run each spec under mpirun")
    arguments, options = parser.parse_known_args()
    main(arguments.out, arguments.ranks, options or ["--clock", "virtual"])
