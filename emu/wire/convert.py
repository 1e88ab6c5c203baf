"""Turns the core's raw capture file (see `raw.py`) into files that Wireshark reads.

Ethernet becomes pcapng, InfiniBand becomes ERF records (see `erf.py`). The file is
read as a stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from emu.errors import FabricError
from emu.fabric_kind import Framing
from emu.output_dir import new_file
from emu.units import format_rate
from emu.wire.capture import Interface, LinkType
from emu.wire.pcapng import PcapngWriter
from emu.wire.raw import RawRecord, read_raw, write_frame

LINK_TYPES = {Framing.ETHERNET: LinkType.ETHERNET, Framing.INFINIBAND: LinkType.ERF}
"""The link type of a capture; `emu.wire.erf` explains ERF on InfiniBand."""


def convert(
    raw: Path,
    out_dir: Path,
    ports: Mapping[int, str],
    rates: Mapping[str, int],
    framing: Framing,
) -> dict[str, Path]:
    """Writes one file for each captured port: port name -> file.

    `ports` maps the core's port index to names like `leaf1:h1`, `rates` these names to bits/s. The
    name of a file is `leaf1-h1.pcapng` or, for InfiniBand, `leaf1-h1.erf`. A port without frames
    has an empty file. Raises FabricError when `raw` is not a raw capture of a fabric with this
    framing.
    """
    linktype = LINK_TYPES[framing]
    files = {name: out_dir / _file_name(name, linktype) for name in ports.values()}
    with ExitStack() as open_files:
        writers: dict[str, PcapngWriter] = {}
        for name, path in files.items():
            stream = open_files.enter_context(new_file(path))
            writers[name] = PcapngWriter(
                stream, [capture_interface(name, linktype, rates.get(name, 0))]
            )
        for name, record in _records_of(raw, ports, linktype):
            write_frame(writers[name], record)
    return files


def capture_interface(name: str, linktype: LinkType, rate_bps: int) -> Interface:
    """The description of a port in a capture. `rate_bps` is 0 if unknown."""
    description = f"{name}, {format_rate(rate_bps)}, emulated time" if rate_bps else name
    return Interface(name, linktype, description=description, speed_bps=rate_bps)


def _read(raw: Path) -> Iterator[RawRecord]:
    with raw.open("rb") as stream:
        yield from read_raw(stream, raw)


def _records_of(
    raw: Path, ports: Mapping[int, str], linktype: LinkType
) -> Iterator[tuple[str, RawRecord]]:
    """The records, each with its port's name."""
    for record in _read(raw):
        if record.port_index not in ports:
            raise FabricError(f"{raw}: a record of port {record.port_index}, which is not captured")
        name = ports[record.port_index]
        if record.linktype is not linktype:
            raise FabricError(
                f"{raw}: a frame of link type {record.linktype.name} at {name}, in a capture of "
                f"link type {linktype.name}"
            )
        yield name, record


def _file_name(port_name: str, linktype: LinkType) -> str:
    """`leaf1:spine1#2` -> `leaf1-spine1-2.pcapng`."""
    suffix = ".pcapng" if linktype is LinkType.ETHERNET else ".erf"
    return port_name.replace(":", "-").replace("#", "-") + suffix
