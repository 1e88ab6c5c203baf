"""The flow model beside packets: an all-to-all on a three-tier fat tree.

Both models run the same spec in this process, from its text to its recording, in turns. The figure
is messages per second, of 1 MB each. Packets on the virtual clock are the baseline; with larger
messages their rate falls, and that of the flow model does not.

To reach: 10 times the baseline.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from emu.bench.row import Row, Target, side_by_side
from emu.models import FLOW, PACKETS
from emu.runtime import runner_of
from emu.spec.model import load_spec

TARGET = Target(10)
_HOSTS = 54
_TURNS = 3


def measure(*, quick: bool) -> list[Row]:
    """The same if `quick`."""
    with TemporaryDirectory(prefix="emu-bench-") as folder:
        spec = Path(folder) / "flow.emu.yml"
        spec.write_text(json.dumps(_spec(6, _HOSTS)))
        turns = [(_rate(spec, FLOW.name), _rate(spec, PACKETS.name)) for _ in range(_TURNS)]
    flow, packets = zip(*turns, strict=True)
    figure = f"flow model, all-to-all of {_HOSTS} hosts"
    return [side_by_side(figure, "messages/s", flow, packets, TARGET)]


def _spec(k: int, hosts: int) -> dict[str, Any]:
    return {
        "payload": "elided",
        "topology": {"kind": "fat-tree", "k": k},
        "switches": {"buffer": "64MB", "pfc": {}},
        "traffic": [{"name": "a", "pattern": "all-to-all", "among": f"h1-h{hosts}", "size": "1MB"}],
    }


def _rate(spec_file: Path, model: str) -> float:
    """Messages per second of wall-clock time. The spec is read before."""
    spec = load_spec(spec_file)
    messages = len(spec.workload().size_bytes)
    spec.topology.build()
    began = time.monotonic()
    with TemporaryDirectory(prefix="emu-bench-") as out:
        runner_of(model, "virtual").run(spec, out=Path(out))
    return messages / (time.monotonic() - began)
