"""ibsim: answers subnet management packets as a fabric's switches and NICs would.

It runs in the network namespace of the process that starts it. Its sockets are abstract and have
a name of their own, so they leave nothing behind. Its console pulls and plugs in cables; it then
sends the traps that switches would send.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from emu.errors import FabricError
from emu.subnet.ibsim_issm import set_is_sm
from emu.subnet.netfile import net_file
from emu.subnet.programs import last_lines, preload_in, program, umad_to_ibsim
from topologies.graph import Host, Port, Topology
from topologies.guids import port_number

_SECONDS_TO_START = 10.0
_SECONDS_TO_OBEY = 10.0
_SECONDS_BETWEEN_POLLS = 0.002


class Ibsim:
    """A running simulator. Use as a context manager.

    Its files are in `workdir`. Its clients must run there or in a folder of their own: the library
    that simulates their InfiniBand devices writes to the working folder.
    """

    def __init__(self, topology: Topology, workdir: Path) -> None:
        """Raises HostError if it is not installed, FabricError if it refuses the fabric."""
        self.workdir = workdir
        self._topology = topology
        self._socket_name = f"emu-{secrets.token_hex(8)}"
        self._log = workdir / "ibsim.log"
        net = workdir / "fabric.net"
        net.write_text(net_file(topology))
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [*program("ibsim", package="ibsim-utils"), "-s", *_limits(topology), net.name],
                cwd=workdir,
                env={**os.environ, "IBSIM_SOCKNAME": self._socket_name},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        try:
            self._wait_for_sockets()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def pid(self) -> int:
        return self._process.pid

    def environment(self, node: str, folder: Path) -> Mapping[str, str]:
        """The environment of a program that starts in `folder` and runs on this host or switch.

        Raises HostError.
        """
        return {
            "IBSIM_SOCKNAME": self._socket_name,
            "SIM_HOST": node,
            "LD_PRELOAD": f"{preload_in(folder)} {umad_to_ibsim()}",
        }

    def unlink(self, port: Port) -> None:
        """Pulls the cable at a port."""
        self.send(f'Unlink "{port.node}"[{port_number(self._topology, port)}]')

    def relink(self, port: Port) -> None:
        """Plugs it in again."""
        self.send(f'ReLink "{port.node}"[{port_number(self._topology, port)}]')

    def mark_as_manager(self, host: Host) -> None:
        """Sets the host's IsSM bit again, which plugging in its cable cleared."""
        set_is_sm(self._socket_name, host)

    def send(self, *commands: str) -> None:
        """Sends commands to its console."""
        assert self._process.stdin is not None
        self._process.stdin.write("".join(f"{command}\n" for command in commands).encode())
        self._process.stdin.flush()

    def send_and_wait(self, *commands: str) -> None:
        """Sends commands and waits for their end. Raises FabricError if it does not come."""
        read_up_to = self._log.stat().st_size
        done = f"# done {secrets.token_hex(8)}"  # it repeats comments
        self.send(*commands, done)
        deadline, output = time.monotonic() + _SECONDS_TO_OBEY, b""
        with self._log.open("rb") as log:
            log.seek(read_up_to)
            while done.encode() not in (output := output + log.read()):
                if time.monotonic() > deadline:
                    raise FabricError(f"ibsim does not answer; its log is {self._log}")
                time.sleep(_SECONDS_BETWEEN_POLLS)

    def _wait_for_sockets(self) -> None:
        """Waits for its last socket: it does not report that it is ready."""
        deadline = time.monotonic() + _SECONDS_TO_START
        while f"@{self._socket_name}:out9" not in Path("/proc/net/unix").read_text():
            if self._process.poll() is not None:
                raise FabricError(
                    f"ibsim refused the fabric; the last lines of its log:\n{last_lines(self._log)}"
                )
            if time.monotonic() > deadline:
                raise FabricError(f"ibsim did not start within {_SECONDS_TO_START:g} s")
            time.sleep(_SECONDS_BETWEEN_POLLS)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()


def _limits(topology: Topology) -> list[str]:
    """Limits that fit exactly this fabric; a switch also has a port 0."""
    nodes = len(topology.hosts) + len(topology.switches)
    ports = sum(port.number + 1 for own in topology.ports.values() for port in own[-1:])
    return ["-N", str(nodes), "-S", str(len(topology.switches)), "-P", str(ports)]
