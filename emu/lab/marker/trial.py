"""`python -m emu.lab.marker.trial`: whether the eBPF marker works here, by exit code.

Compiles it, loads it and puts it on the loopback interface; run in a scratch
network namespace.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from emu.errors import EmuError
from emu.lab.marker.marker import PRIORITIES, MarkedPort, Marker, Wred, marker_program
from emu.lab.netlink import carry_out


def main() -> int:
    port = MarkedPort("lo", 0, (Wred(0, 0, 0, 0, enabled=False),) * PRIORITIES)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            marker = Marker(marker_program(Path(scratch)), [port])
            carry_out(marker.attach_steps("scratch"), {"scratch": os.getpid()})
    except (OSError, EmuError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
