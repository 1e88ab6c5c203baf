"""The parsers of OpenSM's dump files."""

from __future__ import annotations

import pytest

from emu.errors import FabricError
from emu.subnet.dumps import parse_guid2lid, parse_lfts

LFTS = """\
Unicast lids [0-4] of switch Lid 2 guid 0x0000000000100003 ('leaf1'):
0x0001 001 # Channel Adapter portguid 0x0000000000200003: 'h1'
0x0002 000 # Switch portguid 0x0000000000100003: 'leaf1'
0x0004 254 # Channel Adapter portguid 0x0000000000200005: 'h2 # of (two): all'
3 lids dumped
Unicast lids [0-4] of switch Lid 3 guid 0x000000000010000A ('spine1'):
0xBFFF 001 # Channel Adapter portguid 0x0000000000200003: 'h1'
1 lids dumped
"""


def test_lfts_by_switch_guid_and_lid() -> None:
    """Port 0 is the switch itself; a LID without a row is unreachable."""
    assert parse_lfts(LFTS) == {0x100003: {1: 1, 2: 0, 4: 254}, 0x10000A: {0xBFFF: 1}}


def test_lids_by_port_guid() -> None:
    """One line for each port, with blank lines between them."""
    text = "0x0000000000100003 0x0002 0x0002\n\n0x000000000020000b 0x00ff 0x00ff\n\n"
    assert parse_guid2lid(text) == {0x100003: 2, 0x20000B: 0xFF}


@pytest.mark.parametrize(
    "bad_line", ["0x0001 1 # no such width", "0x0005 UNREACHABLE", "Multicast mlids of switch"]
)
def test_bad_line_is_named(bad_line: str) -> None:
    """The error has the file, the line and its content."""
    with pytest.raises(FabricError, match=r"^opensm-lfts\.dump:3: not understood: ") as error:
        parse_lfts("\n".join([*LFTS.splitlines()[:2], bad_line]))
    assert repr(bad_line) in str(error.value)


def test_unfinished_file_is_an_error() -> None:
    """A table without its last line can lack rows, too."""
    for lines in (2, 4):
        with pytest.raises(FabricError, match="the last table has no end"):
            parse_lfts("\n".join(LFTS.splitlines()[:lines]))


def test_row_before_any_switch_is_an_error() -> None:
    """A table must name its switch."""
    with pytest.raises(FabricError, match=r"^opensm-lfts\.dump:1: "):
        parse_lfts("0x0001 001 # Channel Adapter portguid 0x0000000000200003: 'h1'")


def test_bad_guid2lid_line_is_named() -> None:
    """The same for the LIDs."""
    with pytest.raises(FabricError, match=r"^guid2lid:2: not understood: 'nonsense'"):
        parse_guid2lid("0x0000000000100003 0x0002 0x0002\nnonsense\n")
