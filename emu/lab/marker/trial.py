"""`python -m emu.lab.marker.trial`: tries the eBPF marker; exits with 0 if it works.

It compiles and loads the marker and attaches it to the loopback interface of a scratch network
namespace.
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
