"""Mininet's prompt in a running lab: `h1 ping h5`, `net`, `leaf1 ovs-ofctl dump-flows leaf1`.

`queues`, `pause`, `cnp` and `counters leaf1:h1` show the state of the fabric. `capture leaf1:h1`
writes the frames on a cable until Ctrl-C, as `emu capture` does. On InfiniBand operators' tools run
on any host: `ibnetdiscover`, `h2 iblinkinfo`, `perfquery 3 1`. They query ibsim, which runs with
OpenSM as long as the lab.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mininet.cli import CLI
from mininet.log import output
from mininet.node import Node

from emu.errors import EmuError
from emu.lab import show
from emu.lab.ipc.jobs import OpenShell
from emu.lab.ipc.messages import Done
from emu.lab.ipc.queries import GetPorts, PortsSnapshot
from emu.lab.ipc.rpc import RpcClient
from emu.lab.lab_plan import LabRequest
from emu.lab.link_control import cables_by_faults
from emu.lab.net import FabricNet
from emu.lab.nic_process import rows_of, waits_on
from emu.lab.session import JobResult, Session, open_session, start
from emu.lab.supervisor import Supervisor
from emu.lab.tap_frames import capture_from_prompt
from emu.output_dir import new_file
from emu.spec.diagnostic import unknown_name
from emu.spec.scenario import Spec, spec_from_json
from emu.subnet.programs import DIAGNOSTICS

Diagnosis = Callable[[str, Sequence[str]], str]
"""A host, and the command of one of InfiniBand's tools -> the tool's output there."""


class FabricPrompt(CLI):
    """Mininet's prompt with commands for the fabric. It leaves no history file behind."""

    prompt = "emu> "

    def __init__(
        self,
        net: FabricNet,
        spec: Spec,
        see: Callable[[], PortsSnapshot],
        tap: Callable[[str], int],
        diagnose: Diagnosis | None = None,
        script: str | None = None,
    ) -> None:
        """`see` returns a snapshot of the switch ports, and `tap` a socket with raw records of the
        frames at a switch port. `diagnose` runs one of InfiniBand's tools; None on Ethernet. The
        prompt reads its lines from the file `script`, or from the user if that is None."""
        self._spec = spec
        self._see = see
        self._tap = tap
        topology = spec.topology.build()
        self._rates = {
            topology.port_name[port]: topology.cable[port].rate_bps
            for switch in topology.switches
            for port in topology.ports[switch.name]
        }
        self._diagnose = diagnose
        super().__init__(net, script=script)  # returns when the user leaves

    def do_queues(self, line: str) -> None:
        """Bytes in each queue now, and the bytes of the buffer that each priority occupies."""
        self._print(show.queues(self._see()))

    def do_pause(self, line: str) -> None:
        """Pause frames in each direction, how long they paused, and what is paused now."""
        self._print(show.pause(self._see()))

    def do_cnp(self, line: str) -> None:
        """Packets marked CE, and packets of the priority of CNPs."""
        spec = self._spec
        host = next(iter(spec.topology.build().host))
        self._print(show.cnp(self._see(), spec.cnp_priority(host)))

    def do_counters(self, line: str) -> None:
        """counters [PORT]: the counters of ports that are not zero, e.g. counters leaf1:h1"""
        self._print(show.counters(self._see(), line.strip()))

    def do_capture(self, line: str) -> None:
        """capture PORT [FILE]: the frames on the cable in PORT, e.g. leaf1:h1, in both directions,
        until Ctrl-C. FILE is pcapng (on InfiniBand with ERF records), by default PORT.pcapng."""
        port, _, name = line.strip().partition(" ")
        path = Path(name.strip() or f"{port}.pcapng")
        if port not in self._rates:
            missing = unknown_name("port", port, list(self._rates))
            example = f"capture needs a port, e.g. capture {next(iter(self._rates))}"
            self._print([missing if port else example])
            return
        try:
            with new_file(path, at_once=True) as file:
                done = capture_from_prompt(
                    self._tap(port),
                    port,
                    self._spec.fabric,
                    self._rates[port],
                    file,
                    lambda: self._print([f"capturing to {path} until Ctrl-C"]),
                )
        except OSError as error:
            self._print([f"{path}: {error.strerror}"])
            return
        except EmuError as error:
            self._print([str(error)])
            return
        self._print([f"{done.frames:,} frames captured"])
        if done.missed:
            self._print(
                [f"{done.missed:,} are missing: they arrived faster than they were written"]
            )

    def complete_capture(self, text: str, line: str, begidx: int, endidx: int) -> list[str]:
        """Completes a port's name. readline treats the part after a colon as a word of its own."""
        before = line[:begidx].rpartition(" ")[2]
        if line[: begidx - len(before)].split() != ["capture"]:
            return []
        names = [name for name in self._rates if name.startswith(before + text)]
        return [name.removeprefix(before) for name in names]

    def default(self, line: str) -> None:
        """Runs InfiniBand's tools on a host, and other lines as Mininet does."""
        words = line.split()
        topology = self._spec.topology.build()
        at = words[0] if words[0] in topology.host else topology.hosts[0].name
        command = words[1:] if words[0] == at else words
        if self._diagnose is None or not command or command[0] not in DIAGNOSTICS:
            super().default(line)
        else:
            self.stdout.write(self._diagnose(at, command))

    def waitForNode(self, node: Node) -> None:  # noqa: N802, Mininet's name
        """Passes the user's input to a running command, as Mininet does, but not the lines of a
        script: Mininet would send these to the command, and they would not be run."""
        if self.isatty():
            super().waitForNode(node)
            return
        while node.waiting:
            try:
                output(node.monitor())
            except KeyboardInterrupt:
                node.sendInt()

    def _print(self, lines: list[str]) -> None:
        self.stdout.write("".join(f"{line}\n" for line in lines))
        self.stdout.flush()

    @classmethod
    def initReadline(cls) -> None:  # noqa: N802, Mininet's name
        """Enables line editing, without Mininet's history file in the user's home."""
        import readline  # noqa: F401, gives input() line editing


def run_shell(job: OpenShell, supervisor: Supervisor) -> JobResult:
    """The job of `emu shell SPEC`: a lab without traffic, until the user leaves its prompt."""
    session = open_session(
        LabRequest.interactive_lab(spec_from_json(job.spec), job.out, job.slowdown), supervisor
    )
    start(session)
    own_prompt(session)
    return Done(), []


def own_prompt(session: Session, script: str | None = None) -> None:
    """Runs the prompt of a started lab without traffic. `script`: a file to read lines from."""
    net, subnet, shim = (
        session.lab.net,
        session.subnet,
        RpcClient(session.shim, "the shim", session.spec.name),
    )
    net.on_cables = cables_by_faults(session.spec.topology.build(), shim.ask)

    def see() -> PortsSnapshot:
        return shim.ask(GetPorts())

    def diagnose(node: str, command: Sequence[str]) -> str:
        assert subnet is not None
        return subnet.diagnose(node, command, see().ports, waits_on(rows_of(session.nics))).text

    FabricPrompt(net, session.spec, see, shim.tap, diagnose if subnet else None, script)
