"""The captured ports of a spec, and the conversion of the core's records to capture files."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from emu.bindings.fabric import Fabric
from emu.output_dir import writing_into
from emu.spec.scenario import Spec
from emu.wire.convert import convert
from topologies.graph import Port, Topology


def captured_ports(spec: Spec, topology: Topology) -> Sequence[Port]:
    """The ports that `capture:` names; `all` stands for every switch port."""
    if "all" in spec.capture:
        return topology.switch_ports
    return [topology.port_named[name] for name in spec.capture]


class CaptureFile:
    """The raw records of one process, in a file until the end of the run."""

    def __init__(self, fabric: Fabric, path: Path, ports: Sequence[Port] | None = None) -> None:
        """`ports`: the captured ones; None: all that the spec names."""
        self._fabric = fabric
        self._ports = captured_ports(fabric.spec, fabric.topology) if ports is None else ports
        self._path = path
        self._file = path.open("wb")
        self._passed_on = 0
        """The bytes that another process has."""

    def drain(self) -> None:
        """Moves the records since the last call from the core to the file."""
        self._file.write(self._fabric.captured())

    @contextmanager
    def draining(self, every_seconds: float) -> Iterator[None]:
        """Drains periodically while the body runs, in another thread."""
        over = threading.Event()

        def work() -> None:
            while not over.wait(every_seconds):
                self.drain()

        thread = threading.Thread(target=work, name="capture")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def pieces(self, size: int) -> Iterator[bytes]:
        """The raw records since the last call, in pieces of at most so many bytes, for another
        process."""
        self.drain()
        self._file.flush()
        with self._path.open("rb") as stream:
            stream.seek(self._passed_on)
            while piece := stream.read(size):
                self._passed_on += len(piece)
                yield piece

    def add(self, records: bytes) -> None:
        """Adds raw records of another process, whose ports are not captured here."""
        self._file.write(records)

    def convert(self, out: Path) -> dict[str, Path]:
        """Ends the capture. Returns port name -> file in `out`. Raises EmuError."""
        files = self.convert_so_far(out)
        self._file.close()
        return files

    def convert_so_far(self, out: Path) -> dict[str, Path]:
        """The same for the frames up to now; the capture goes on."""
        self.drain()
        self._file.flush()
        topology, index = self._fabric.topology, self._fabric.index
        ports = self._ports
        if not ports:
            return {}
        names = {index[port]: topology.port_name[port] for port in ports}
        rates = {topology.port_name[port]: topology.cable[port].rate_bps for port in ports}
        with writing_into(out):
            return convert(self._path, out, names, rates, self._fabric.spec.fabric_kind.framing)


@contextmanager
def capture_file(fabric: Fabric) -> Iterator[CaptureFile]:
    """A capture. Its raw records are deleted at the end."""
    with TemporaryDirectory(prefix="emu-") as folder:
        yield CaptureFile(fabric, Path(folder) / "raw")
