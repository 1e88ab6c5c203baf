"""The fixtures of this folder: users that run `emu`, and a lab for programs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.exact_lab import EXACT
from tests.support.lab_fabrics import clos_spec
from tests.support.lab_fixtures import (
    lab_machine,
    myself,
    open_folder,
    ordinary,
    tmp_path,
    user,
    with_tun,
)
from tests.support.verbs_programs import ProgramsLab, programs_lab

__all__ = ["lab_machine", "myself", "open_folder", "ordinary", "tmp_path", "user", "with_tun"]


@pytest.fixture(scope="module")
def lab(open_folder: Path) -> Iterator[ProgramsLab]:
    """A RoCE fabric on the exact clock, with two leaves of two hosts."""
    with programs_lab(open_folder, clos_spec(), *EXACT) as up:
        yield up
