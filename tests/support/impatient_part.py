"""A process of a lab on the exact clock that waits for a frame, and for the other process, for a
second only.

`python -m tests.support.impatient_part MODULE FD`, with the module whose `job` the process does.
EMU_TEST_OTHER_SECONDS: how long it waits for the other process instead.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from emu.bindings.exact_driver import ExactDriver, Patience
from emu.bindings.fabric import Fabric
from emu.lab import exact_clock
from emu.lab.ipc.channel import Channel
from emu.lab.session import Programs
from emu.lab.worker import serve

OTHER_SECONDS = "EMU_TEST_OTHER_SECONDS"
_MODULE = "tests.support.impatient_part"
PROGRAMS = Programs(
    shim=(sys.executable, "-m", _MODULE, "emu.lab.shim_main"),
    rnic=(sys.executable, "-m", _MODULE, "emu.lab.rnic_main"),
)


class _Impatient(ExactDriver):
    def __init__(self, fabric: Fabric, *, step_ps: int, wake: int) -> None:
        patience = Patience(1.0, float(os.environ.get(OTHER_SECONDS, "1")))
        super().__init__(fabric, step_ps=step_ps, wake=wake, patience=patience)


def job(channel: Channel) -> None:
    vars(exact_clock)["ExactDriver"] = _Impatient
    import_module(sys.argv[1]).job(channel)


if __name__ == "__main__":
    serve(job)
