"""`python -m emu.wireshark.extcap`: the cables of the user's running labs, for Wireshark.

Wireshark runs this program to list its interfaces, and again to capture on one of them,
with the arguments of `doc/extcap.4`:

    --extcap-interfaces                                       a line for each interface
    --extcap-interface NAME --extcap-dlts | --extcap-config   what it captures, its settings
    --extcap-interface NAME --capture --fifo PATH             captures into PATH

An interface is called PORT@LAB: `leaf1:h1@incast`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import emu
from emu.daemon import registry
from emu.daemon.client import LabClient
from emu.daemon.tap_client import capture_port
from emu.errors import EmuError, ExitCode, FabricError, UsageError
from emu.fabric_kind import FABRIC_KINDS, Framing
from emu.output_dir import new_file
from emu.units import format_rate
from emu.wire.capture import LinkType

_LINK_TYPES = {
    Framing.ETHERNET: f"dlt {{number={LinkType.ETHERNET}}}{{name=EN10MB}}{{display=Ethernet}}",
    Framing.INFINIBAND: (
        f"dlt {{number={LinkType.ERF}}}{{name=ERF}}{{display=InfiniBand in ERF records}}"
    ),
}


def main(arguments: list[str]) -> int:
    options = _parser().parse_known_args(arguments)[0]
    try:
        if options.capture:
            return _capture(options.extcap_interface, options.fifo)
        for line in _answers(options):
            print(line)
    except EmuError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return ExitCode.OK


def _answers(options: argparse.Namespace) -> Iterator[str]:
    if options.extcap_interfaces:
        yield f"extcap {{version={emu.__version__}}}{{display=emu: cables of running labs}}"
        for lab in registry.names():
            try:
                yield from _interfaces(lab)
            except (FabricError, UsageError) as error:  # the lab has just ended, or does not answer
                print(error, file=sys.stderr)
    elif options.extcap_dlts:
        with LabClient(options.extcap_interface.partition("@")[2]) as client:
            fabric = client.ports().fabric
        yield _LINK_TYPES[FABRIC_KINDS[fabric].framing]


def _interfaces(lab: str) -> Iterator[str]:
    with LabClient(lab) as client:
        rates = client.ports().rates_bps
    for port, rate_bps in rates.items():
        yield f"interface {{value={port}@{lab}}}{{display=emulated, {format_rate(rate_bps)}}}"


def _capture(interface: str, fifo: str) -> int:
    """Captures until Wireshark closes the pipe or sends SIGTERM."""
    port, _, lab = interface.partition("@")
    try:
        with LabClient(lab) as client, new_file(Path(fifo), at_once=True) as stream:
            done = capture_port(client, port, stream)
    except BrokenPipeError:
        return ExitCode.OK
    if done.missed:
        print(f"{done.missed} frames are missing: they came too fast", file=sys.stderr)
    return ExitCode.OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("emu-extcap", allow_abbrev=False)
    for flag in ("--extcap-interfaces", "--extcap-dlts", "--extcap-config", "--capture"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--extcap-interface")
    parser.add_argument("--fifo")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
