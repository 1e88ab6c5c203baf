"""The exact clock: a lab in namespaces, whose time passes while the program awaits something.

    program ── post, poll ──▶ NICs ══ sockets on the hosts' interfaces ══ shim, in the lab
                                 └────── shared memory: emulated times ──────┘

The NICs run in this process, as on the real clock, and in turns with the program, as on the virtual
one: up to the next completion. Only then does the shim learn what the NICs do next, so that the
program may post work at that instant. Results are those of the virtual clock. While the program
does something else, time stands in the whole lab. Users cannot stop it or set faults.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from emu.bindings.exact_driver import ExactDriver, Outcome, Wakes
from emu.bindings.fabric import Fabric
from emu.daemon.client import LabClient
from emu.daemon.messages import JoinLab
from emu.errors import FabricError, UsageError
from emu.lab.exact_clock import STEP_PS, attach_nic
from emu.lab.ipc.jobs import ServeLab
from emu.rdma.clock import SteppedClock
from emu.rdma.own_lab import HostSockets, OwnLab, borrow_nics, own_lab
from emu.runtime.exact import obstacle
from emu.spec.scenario import Spec

_SECONDS_A_TURN = 0.1


@contextmanager
def exact_lab(spec: Spec) -> Iterator[tuple[Spec, OwnLab, HostSockets]]:
    """A lab on the exact clock that ends with the body: its spec with the lab's name, the lab, and
    the sockets of its hosts.

    Raises UsageError, HostError, FabricError.
    """
    if found := obstacle(spec):
        raise UsageError(str(found))
    named = spec.model_copy(update={"name": f"{spec.name}-{os.getpid()}"})
    job = ServeLab(named.to_json(), 1, ip=False, exact=True)
    with own_lab(job) as lab, LabClient(named.name) as client:
        yield named, lab, borrow_nics(client, named.topology.build())


class ExactClock(SteppedClock):
    """Time passes in the whole lab, in steps between the turns of the program's tasks."""

    def __init__(self, fabric: Fabric, lab: OwnLab, sockets: HostSockets) -> None:
        super().__init__(fabric)
        self._lab = lab
        self._sockets = sockets
        self._driver = ExactDriver(fabric, step_ps=STEP_PS, wake=lab.ended)

    def start(self) -> None:
        """Joins the lab at its present time. The cables must be connected."""
        topology = self.fabric.topology
        for host, (opened, ifindex) in self._sockets.hosts.items():
            attach_nic(self._driver, topology, host, opened, ifindex)
        with LabClient(self._lab.name) as client:
            _, (memory, nudge, resume) = client.ask(JoinLab())
        with closing(Wakes(nudge, resume)) as wakes:
            try:
                self._driver.join(memory, wakes, endless=True)
            finally:
                os.close(memory)
        self.fabric.start()

    def close(self) -> None:
        self._driver.__exit__(None, None, None)

    def _run(self, until_ps: int) -> None:
        """As in SteppedClock. Raises FabricError when the run has failed or the lab has ended."""
        self._driver.stop_at_event(self.event, until_ps)
        while True:
            outcome = self._driver.run(seconds=_SECONDS_A_TURN)
            if outcome is Outcome.EVENT:
                return
            if outcome is Outcome.WOKEN:
                raise self._lab.why_ended or FabricError(f"the lab {self._lab.name} has ended")
