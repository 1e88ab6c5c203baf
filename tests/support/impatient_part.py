"""A process of a lab on the exact clock that waits for the other one for a second only.

`python -m tests.support.impatient_part MODULE FD`, with the module whose `job` the process does.
"""

from __future__ import annotations

import sys
from importlib import import_module

from emu.bindings.exact_driver import ExactDriver, Patience
from emu.bindings.fabric import Fabric
from emu.lab import exact_clock
from emu.lab.ipc.channel import Channel
from emu.lab.worker import serve


class _Impatient(ExactDriver):
    def __init__(self, fabric: Fabric, *, step_ps: int, wake: int) -> None:
        super().__init__(fabric, step_ps=step_ps, wake=wake, patience=Patience(1.0, 1.0))


def job(channel: Channel) -> None:
    vars(exact_clock)["ExactDriver"] = _Impatient
    import_module(sys.argv[1]).job(channel)


if __name__ == "__main__":
    serve(job)
