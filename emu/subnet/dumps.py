"""Reads the files that OpenSM leaves behind.

    opensm-lfts.dump      Unicast lids [0-8] of switch Lid 2 guid 0x0000000000100001 ('leaf1'):
                          0x0001 001 # Channel Adapter portguid 0x0000000000200003: 'h1'
                          0x0002 000 # Switch portguid 0x0000000000100001: 'leaf1'
                          2 lids dumped

    guid2lid              0x0000000000200003 0x0001 0x0001        port GUID, its first and last LID

An unreachable LID has no row. OpenSM rewrites the file in every sweep; a file that it has not
finished is an error, too.
"""

from __future__ import annotations

import re

from emu.errors import FabricError

_SWITCH = re.compile(r"Unicast lids .* of switch Lid \d+ guid (0x[0-9a-f]{16}) .*:", re.IGNORECASE)
_ROW = re.compile(r"(0x[0-9a-f]{4}) (\d{3}) #.*", re.IGNORECASE)
_END = re.compile(r"\d+ lids dumped")
_ASSIGNMENT = re.compile(r"(0x[0-9a-f]{16}) (0x[0-9a-f]{4}) 0x[0-9a-f]{4}", re.IGNORECASE)


def parse_lfts(text: str) -> dict[int, dict[int, int]]:
    """Switch GUID -> LID -> output port. Port 0 is the switch itself. Raises FabricError."""
    lfts: dict[int, dict[int, int]] = {}
    lft: dict[int, int] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if switch := _SWITCH.fullmatch(line):
            lft = lfts[int(switch[1], 16)] = {}
        elif (row := _ROW.fullmatch(line)) and lft is not None:
            lft[int(row[1], 16)] = int(row[2])
        elif _END.fullmatch(line):
            lft = None
        elif line:
            raise _not_understood("opensm-lfts.dump", number, line)
    if lft is not None:
        raise FabricError("opensm-lfts.dump: the last table has no end; is OpenSM writing it?")
    return lfts


def parse_guid2lid(text: str) -> dict[int, int]:
    """Port GUID -> its (first) LID. Raises FabricError."""
    lids: dict[int, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if assignment := _ASSIGNMENT.fullmatch(line):
            lids[int(assignment[1], 16)] = int(assignment[2], 16)
        elif line:
            raise _not_understood("guid2lid", number, line)
    return lids


def _not_understood(file: str, number: int, line: str) -> FabricError:
    return FabricError(
        f"{file}:{number}: not understood: {line!r}; "
        "is this another version of OpenSM? vagrant/provision.sh names the tested one"
    )
