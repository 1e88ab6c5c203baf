"""`python -m emu.bench.build_only SPEC`: validates a spec, builds its fabric, and ends."""

from __future__ import annotations

import sys
from pathlib import Path

from emu.runtime.virtual import VirtualFabric
from emu.spec.model import load_spec
from emu.subnet.sm_sweeps import swept


def main(path: Path) -> None:
    spec = load_spec(path)
    topology = spec.topology.build()
    with VirtualFabric(spec, topology, swept(spec, topology)) as built:
        built.start()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
