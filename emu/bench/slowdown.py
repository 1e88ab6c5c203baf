"""The smallest slowdown at which live runs keep their schedule: 8 hosts, all to all.

Links have 100 Gbit/s, packets 4096 bytes, and PFC is on. A slowdown counts if three
runs in a row have the verdict ok. Bisection finds it among slowdowns that grow by
10 % each.

Baseline: none. To reach: 1000 if Open vSwitch forwards, 400 if the shim does.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from emu.bench.row import Row, Target
from emu.measure.recording import Recording
from emu.runtime.real import run_at
from emu.spec.scenario import Spec

TARGETS = {"ovs": Target(1000, at_most=True), "shim": Target(400, at_most=True)}
_LADDER = tuple(round(100 * 1.1**rung) for rung in range(50))
_RUNS_IN_A_ROW = 3


def measure(*, quick: bool) -> list[Row]:
    return [_row(plane) for plane in TARGETS]


def _row(plane: str) -> Row:
    tried: dict[int, list[int]] = {}
    """Slowdown -> the 99th percentile of lateness in each run, in ns."""

    @cache
    def is_kept(slowdown: int) -> bool:
        tried[slowdown] = []
        for _ in range(_RUNS_IN_A_ROW):
            fidelity = _run(_spec(plane), slowdown).fidelity
            tried[slowdown].append(fidelity.late_p99_ns)
            if fidelity.verdict != "ok":
                return False
        return True

    rung = bisect_left(_LADDER, True, key=is_kept)
    figure = f"smallest faithful slowdown, plane {plane}"
    details = {"late_p99_ns": tried}
    if rung == len(_LADDER):
        note = f"no slowdown up to {_LADDER[-1]} was kept; was the machine busy?"
        return Row(figure, "times", target=TARGETS[plane], note=note, details=details)
    return Row(figure, "times", _LADDER[rung], target=TARGETS[plane], details=details)


def _run(spec: Spec, slowdown: int) -> Recording:
    with TemporaryDirectory(prefix="emu-bench-") as out:
        return run_at(spec, float(slowdown), Path(out))


def _spec(plane: str) -> Spec:
    return Spec.model_validate(
        {
            "name": "all-to-all",
            "plane": plane,
            "topology": {"kind": "leaf-spine", "spines": 2, "leaves": 2, "hosts_per_leaf": 4},
            "switches": {"pfc": {}},
            "hosts": {"nic": {"mtu": 4096}},
            "traffic": [
                {"name": "all", "pattern": "all-to-all", "among": "h1-h8", "size": "128KB"}
            ],
        }
    )
