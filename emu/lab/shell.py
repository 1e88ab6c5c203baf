"""Mininet's prompt in a running lab: `h1 ping h5`, `net`, `leaf1 ovs-ofctl dump-flows leaf1`.

And what the fabric itself has to say: `queues`, `pause`, `cnp`, `counters leaf1:h1`. On
InfiniBand, too, operators' tools, run on any host: `ibnetdiscover`, `h2 iblinkinfo`,
`perfquery 3 1`. They ask ibsim, beside which OpenSM runs as long as the prompt does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from mininet.cli import CLI

from emu.lab import look
from emu.lab.messages import Json, Look, Request
from emu.lab.namespace import PRIVATE
from emu.lab.net import FabricNet
from emu.lab.session import JobResult, Session, open_session, start, wait_done
from emu.lab.supervisor import Supervisor
from emu.shim.managed import manager_host, policy_of
from emu.spec.scenario import Spec
from emu.subnet import ManagedFabric
from emu.subnet.diagnostics import DIAGNOSTICS, diagnose, tell_counters


class FabricPrompt(CLI):
    """Mininet's prompt under our name; leaves no history file behind."""

    prompt = "emu> "

    def __init__(
        self,
        net: FabricNet,
        spec: Spec,
        see: Callable[[], Json],
        managed: ManagedFabric | None = None,
    ) -> None:
        """`see` returns what the shim sees at this moment (`emu.lab.look.look`); `managed` is the
        subnet that InfiniBand's tools ask, where there is one."""
        self._spec = spec
        self._see = see
        self._managed = managed
        super().__init__(net)  # does not return before the user leaves

    def do_queues(self, line: str) -> None:
        """Bytes that wait in each queue now, and what each priority holds of the buffer."""
        self._say(look.queues(self._see()))

    def do_pause(self, line: str) -> None:
        """Pause frames each way, how long they held, and what is paused now."""
        self._say(look.pause(self._see()))

    def do_cnp(self, line: str) -> None:
        """Packets marked CE, and packets on the priority of CNPs."""
        spec = self._spec
        host = next(iter(spec.topology.build().host))
        priority = spec.classes_of(host).priority_of_dscp(spec.host(host).nic.cnp_dscp)
        self._say(look.cnp(self._see(), priority))

    def do_counters(self, line: str) -> None:
        """counters [PORT]: all that ports have counted, e.g. counters leaf1:h1"""
        self._say(look.counters(self._see(), line.strip()))

    def default(self, line: str) -> None:
        """InfiniBand's tools, at a host; everything else is Mininet's."""
        words = line.split()
        topology = self._spec.topology.build()
        at = words[0] if words[0] in topology.host else topology.hosts[0].name
        command = words[1:] if words[0] == at else words
        if self._managed is None or not command or command[0] not in DIAGNOSTICS:
            super().default(line)
            return
        ports = {name: own["counters"] for name, own in self._see()["ports"].items()}
        tell_counters(self._managed.simulator, topology, ports)
        self.stdout.write(diagnose(self._managed.simulator, at, command))

    def _say(self, lines: list[str]) -> None:
        self.stdout.write("".join(f"{line}\n" for line in lines))

    @classmethod
    def initReadline(cls) -> None:  # noqa: N802, Mininet's name
        """Line editing, without Mininet's history file in the user's home."""
        import readline  # noqa: F401, importing it gives input() line editing


def run_shell(request: Request, supervisor: Supervisor) -> JobResult:
    """The job `shell`: a lab without traffic of its own, until the user leaves it."""
    session = open_session(request, supervisor, with_rnic=False)
    start(session)
    with _manager(session.spec) as managed:
        FabricPrompt(session.lab.net, session.spec, partial(see, session), managed)
    return {}, []


def see(session: Session) -> Json:
    """What the shim sees at this moment."""
    session.shim.send(Look())
    return wait_done(session.shim)


@contextmanager
def _manager(spec: Spec) -> Iterator[ManagedFabric | None]:
    """InfiniBand's subnet manager, where the lab's first sweep has left its LIDs."""
    if spec.fabric != "ib":
        yield None
        return
    topology = spec.topology.build()
    host = manager_host(spec, topology)
    with ManagedFabric(topology, policy_of(spec), PRIVATE / "subnet", host=host) as managed:
        yield managed
