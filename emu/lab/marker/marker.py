"""The eBPF marker, from C file to running program; `mark.bpf.c` describes the marking.

    compile_marker ─▶ mark.bpf.o ─▶ Marker(ports) ─▶ attach_steps

The shim maps the marker's `depths` into memory and writes the depth of every queue there. It also
maps `curves`, which faults change. `marks` counts the marked packets.
"""

from __future__ import annotations

import socket
import struct
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from emu.errors import HostError
from emu.lab.command import run
from emu.lab.marker.libbpf import BpfObject
from emu.lab.net_steps import AttachClsact, AttachEgressFilter, NetStep

# mark.bpf.c has the same numbers.
PORTS = 1024
PRIORITIES = 8

_SOURCE = Path(__file__).with_name("mark.bpf.c")
_CORE = Path(__file__).parents[2] / "core"
_CURVE = _CORE / "switch/wred.h"
SOURCES = (_SOURCE, _CURVE)
OBJECT = _SOURCE.with_suffix(".o")
"""The compiled marker in the package, if it could be compiled when the package was built."""

_PROGRAM = "mark"
_WRED = struct.Struct("=IIIII")
_QUEUES = struct.Struct(f"={PRIORITIES}B")
_MARKS = struct.Struct(f"={PRIORITIES}Q")


@dataclass(frozen=True)
class Wred:
    """`struct wred` of wred.h."""

    kmin_bytes: int
    kmax_bytes: int
    pmax_2_32: int
    """The probability at kmax, times 2^32 - 1."""
    seed: int
    """The seed of the port's random draws, 32 bits."""
    enabled: bool = True


@dataclass(frozen=True)
class MarkedPort:
    """A switch port that marks."""

    interface: str
    index: int
    """The port's row in the maps."""
    wred: tuple[Wred, ...]
    """One curve for each queue."""
    queue_of: tuple[int, ...] = tuple(range(PRIORITIES))
    """The queue of each priority."""


class Marker:
    """The marker, loaded and ready to be attached to its ports."""

    def __init__(self, program: Path, ports: Sequence[MarkedPort]) -> None:
        """Loads and configures the marker. The calling thread must be in the ports' namespace.

        Raises OSError if eBPF cannot be loaded.
        """
        self._bpf = BpfObject(program)
        self._marks = self._bpf.map_fd("marks")
        self.depths = self._bpf.map_fd("depths")
        """A descriptor to map into memory: for each port index 8 queue depths in bytes, 32 bits
        each."""
        self.curves = self._bpf.map_fd("curves")
        """A descriptor to map into memory: a `struct wred_curves` (wred.h) for each port index."""
        for port in ports:
            self._configure(port)
        self._interfaces = [port.interface for port in ports]

    def attach_steps(self, namespace: str) -> list[NetStep]:
        """The steps that run the marker on all packets that leave its ports."""
        program = self._bpf.program_fd(_PROGRAM)
        return [
            *(AttachClsact(namespace, one) for one in self._interfaces),
            *(AttachEgressFilter(namespace, one, _PROGRAM, program) for one in self._interfaces),
        ]

    @property
    def program(self) -> int:
        """The descriptor of the program."""
        return self._bpf.program_fd(_PROGRAM)

    def marks(self, index: int) -> tuple[int, ...]:
        """Packets marked at a port so far, for each priority."""
        return _MARKS.unpack(self._bpf.look_up(self._marks, index, _MARKS.size))

    def _configure(self, port: MarkedPort) -> None:
        ifindex = socket.if_nametoindex(port.interface)
        self._bpf.update(self._bpf.map_fd("port_of"), ifindex, struct.pack("=I", port.index))
        self._bpf.update(self.curves, port.index, _curves(port))


def marker_program(scratch: Path) -> Path:
    """The compiled marker: the package's, or a new one in the folder `scratch`.

    Raises HostError if it cannot be compiled.
    """
    if OBJECT.exists():
        return OBJECT
    made = scratch / OBJECT.name
    compile_marker(made)
    return made


def compile_marker(out: Path) -> None:
    """Compiles mark.bpf.c. Raises HostError without clang or libbpf's headers."""
    headers = f"/usr/include/{sysconfig.get_config_var('MULTIARCH')}"
    flags = ["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpf"]
    include = [f"-I{headers}", f"-I{_CORE}"]
    if not Path("/usr/include/bpf/bpf_helpers.h").exists():
        raise HostError("libbpf's headers are missing", remedy="sudo apt-get install libbpf-dev")
    run(["clang", *flags, *include, "-c", str(_SOURCE), "-o", str(out)])


def _curves(port: MarkedPort) -> bytes:
    """`struct wred_curves` of wred.h."""
    assert len(port.wred) == PRIORITIES
    curves = (
        _WRED.pack(curve.kmin_bytes, curve.kmax_bytes, curve.pmax_2_32, curve.seed, curve.enabled)
        for curve in port.wred
    )
    return b"".join(curves) + _QUEUES.pack(*port.queue_of)
