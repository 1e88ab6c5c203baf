"""Datagrams leave with what their memory had when they were posted, as they do on a real machine,
where a NIC reads them before a program can do much. UCX relies on that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_programs import ProgramsLab

pytestmark = [needs_verbs, pytest.mark.usefixtures("lab_machine")]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("refilled", id="memory that is filled anew"),
        pytest.param("long", id="longer than the library copies"),
        pytest.param("refused", id="memory that the NIC may not read"),
    ],
)
def test_datagram_has_the_bytes_of_its_posting(
    lab: ProgramsLab, open_folder: Path, case: str
) -> None:
    assert lab.prints("h1", compiled("datagrams", open_folder), case) == ""
