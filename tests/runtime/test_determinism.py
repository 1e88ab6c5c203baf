"""The same spec and seed give the same files for every user, machine and order of the spec's
lists.

Each run is a process of its own, by the `emu` command, with its own hash seed, working folder and
output folder. The test compares captures byte for byte, and the summary without the seconds that
the run took.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SPEC = """
name: same
fabric: {fabric}
seed: 3
topology:
  kind: graph
  switches: [{switches}]
  hosts: [{hosts}]
  links:
{links}
switches: {{buffer: 1MB, pfc: {{xoff: 96KB}}, ecn: {{}}}}
hosts: {{nic: {{cc: dcqcn}}}}
traffic:
  - {{name: incast, pattern: incast, from: h2-h4, to: h1, op: write, size: 200KB}}
  - {{name: shuffle, pattern: permutation, among: h1-h4, size: 100KB}}
capture: [leaf1:h1, leaf1:spine1]
"""
SWITCHES = ["leaf1", "leaf2", "spine1", "spine2"]
HOSTS = ["h1", "h2", "h3", "h4"]
CABLES = [
    *[(leaf, spine) for leaf in SWITCHES[:2] for spine in SWITCHES[2:]],
    *[("leaf1", "h1"), ("leaf1", "h2"), ("leaf2", "h3"), ("leaf2", "h4")],
]


def as_listed(fabric: str) -> str:
    return _spec(fabric, SWITCHES, HOSTS, CABLES)


def backwards(fabric: str) -> str:
    """The same fabric with every list, and every pair of ends, reversed."""
    cables = [(b, a) for a, b in reversed(CABLES)]
    return _spec(fabric, SWITCHES[::-1], HOSTS[::-1], cables)


def _spec(fabric: str, switches: list[str], hosts: list[str], cables: list[tuple[str, str]]) -> str:
    links = "\n".join(
        f"    - {{between: [{a}, {b}], rate: 100Gbit, delay: 500ns}}" for a, b in cables
    )
    return SPEC.format(
        fabric=fabric, switches=", ".join(switches), hosts=", ".join(hosts), links=links
    )


def run(text: str, folder: Path, *, hash_seed: int, out: str) -> dict[str, str]:
    """Runs the spec in `folder`; returns a hash by name of each output file."""
    folder.mkdir(parents=True)
    (folder / "same.emu.yml").write_text(text)
    command = [sys.executable, "-m", "emu.cli.main", "run", "same.emu.yml", "--clock", "virtual"]
    done = subprocess.run(
        [*command, "--out", out],
        cwd=folder,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {file.name: _digest(file) for file in (folder / out).iterdir() if _is_same(file)}


def _is_same(file: Path) -> bool:
    """Whether two runs should write the same file: the report names the folder of its captures,
    archives have dates, and the spec is written as it was given."""
    return file.suffix in (".json", ".pcapng", ".erf") and file.name != "spec.json"


def _digest(file: Path) -> str:
    content = file.read_bytes()
    if file.suffix == ".json":
        summary = json.loads(content)
        del summary["wall_seconds"]
        content = json.dumps(summary).encode()  # keys in the summary's order
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_output_is_independent_of_hash_seed_and_order(fabric: str, tmp_path: Path) -> None:
    first = run(as_listed(fabric), tmp_path / "one", hash_seed=1, out="out")
    second = run(backwards(fabric), tmp_path / "two/deep", hash_seed=2, out="results/of/it")
    assert len(first) == 3
    assert first == second
