"""Registered memory is the program's own memory, whatever the program does with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_nics import NOTHING, holdings, nics_of, resident_kb
from tests.support.verbs_programs import ProgramsLab
from tests.support.waiting import eventually

pytestmark = [needs_verbs, pytest.mark.usefixtures("lab_machine")]

SECONDS_FOR_1_GB = 6.0
"""2 s on an idle machine, in which writing to that much new memory takes half a second."""


MORE_KB = 2000
"""Python's own. 3000 regions of 40 pages are 480000."""


@pytest.fixture(scope="module")
def memory(open_folder: Path) -> str:
    return compiled("memory", open_folder)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("kinds", id="data, bss, stack and heap"),
        pytest.param("read_only", id="read-only memory"),
        pytest.param("overlaps", id="regions that overlap"),
        pytest.param("again", id="ibv_rereg_mr"),
        pytest.param("hammering", id="threads write meanwhile"),
    ],
)
def test_memory_is_seen_by_program_and_peer(lab: ProgramsLab, memory: str, case: str) -> None:
    assert lab.prints("h1", memory, case) == ""


@pytest.mark.parametrize("case", ["unmapped", "moved", "emptied", "freed"])
def test_memory_that_goes_away_is_never_stale(lab: ProgramsLab, memory: str, case: str) -> None:
    """As with the pages that a NIC has pinned: munmap and new memory there, mremap, MADV_DONTNEED,
    and malloc's own calls."""
    assert lab.prints("h1", memory, case) == ""


@pytest.mark.parametrize("case", ["forked", "child_registers"])
def test_child_has_copies_of_registered_memory(lab: ProgramsLab, memory: str, case: str) -> None:
    assert lab.prints("h1", memory, case) == ""


def test_shared_and_missing_memory_is_refused(lab: ProgramsLab, memory: str) -> None:
    ended = lab.run("h1", "env", "EMU_VERBS_DEBUG=1", memory, "refused")
    assert ended.code == 0, ended.err
    assert "is shared (MAP_SHARED, shmget); a NIC can have private memory only" in ended.err


def test_gigabyte_registers_in_seconds(lab: ProgramsLab, memory: str) -> None:
    """Touched and untouched."""
    printed = lab.prints("h1", memory, "large")
    seconds = [float(number) for number in re.findall(r"([0-9.]+) s", printed)]
    assert len(seconds) == 4, printed
    assert max(seconds) < SECONDS_FOR_1_GB, printed
    assert max(seconds[:2]) < 0.5, printed


def test_rounds_of_registrations_leave_nothing(lab: ProgramsLab, memory: str) -> None:
    """Neither mappings in the program nor in the NICs' process."""
    lab.prints("h1", memory, "rounds", "1000")
    nics = nics_of(lab.user)
    before_kb = resident_kb(nics)
    lab.prints("h1", memory, "rounds", "3000")
    eventually(lambda: holdings(nics) == NOTHING)
    assert resident_kb(nics) < before_kb + MORE_KB
