"""The cost of `emu run --clock virtual` beside that of its core.

The figure is the processor time of the whole process: reading the spec, building the fabric,
progress, captures and the report. The baseline is the processor time of the core alone, on the
same spec, from the start to the end of the workload. The fabrics are a leaf-spine of 8 hosts and
a fat tree of 1,024. Each host has one flow of 6 MB, in a traffic entry of its own. With 1,024
hosts, the core needs 4 to 5 s on a machine of 2025. The process may cache compiled modules, like
an installed program, even if this environment forbids it. The first turn may compile them, and
the median excludes that turn.

To reach: at most 1.5 times the core with 1,024 hosts. Eight hosts have no target, because the
interpreter alone takes longer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from os import environ, wait4, waitstatus_to_exitcode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from emu.bench.row import Row, Target, side_by_side
from emu.errors import FabricError
from emu.runtime.virtual import VirtualFabric
from emu.spec.model import Spec, load_spec

TARGET = Target(1.5, at_most=True)
_EMU_RUN = (sys.executable, "-m", "emu.cli.main", "run", "--clock", "virtual", "--quiet")
_FABRICS: dict[int, dict[str, Any]] = {
    8: {"kind": "leaf-spine", "spines": 2, "leaves": 2, "hosts_per_leaf": 4},
    1024: {"kind": "fat-tree", "k": 16},
}
_TURNS = 3
_KEEP_NO_COMPILED = "PYTHONDONTWRITEBYTECODE"


def measure(*, quick: bool) -> list[Row]:
    return [
        _row(hosts, None if hosts == 8 else TARGET) for hosts in _FABRICS if hosts == 8 or not quick
    ]


def _row(hosts: int, target: Target | None) -> Row:
    with TemporaryDirectory(prefix="emu-bench-") as folder:
        spec = Path(folder) / "whole.emu.yml"
        spec.write_text(json.dumps(_spec(hosts)))
        turns = [
            (_whole(spec, Path(folder) / "out"), _core(load_spec(spec))) for _ in range(_TURNS)
        ]
    whole, core = zip(*turns, strict=True)
    return side_by_side(f"whole process against the core, {hosts} hosts", "s", whole, core, target)


def _spec(hosts: int) -> dict[str, Any]:
    """A spec in which each host sends to the host that is half of the fabric away."""
    return {
        "payload": "elided",
        "topology": _FABRICS[hosts],
        "switches": {"buffer": "64MB", "pfc": {}},
        "traffic": [
            {
                "name": f"f{n + 1}",
                "pattern": "pair",
                "from": f"h{n + 1}",
                "to": f"h{(n + hosts // 2) % hosts + 1}",
                "size": "6MB",
            }
            for n in range(hosts)
        ],
    }


def _whole(spec: Path, out: Path) -> float:
    """The processor time of the process alone. Raises FabricError when the run fails."""
    process = subprocess.Popen(
        [*_EMU_RUN, str(spec), "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={name: value for name, value in environ.items() if name != _KEEP_NO_COMPILED},
    )
    assert process.stderr is not None
    stderr = process.stderr.read().decode(errors="replace")
    _, status, used = wait4(process.pid, 0)
    process.returncode = waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise FabricError(
            f"emu run ended with exit code {process.returncode}: {stderr.strip()[-300:]}"
        )
    return used.ru_utime + used.ru_stime


def _core(spec: Spec) -> float:
    with VirtualFabric(spec, spec.topology.build()) as run:
        run.start()
        began = time.process_time()
        while not run.finished:
            run.run_steps(run.now_ns + 100_000_000)
        return time.process_time() - began
