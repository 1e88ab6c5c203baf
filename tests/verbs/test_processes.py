"""A child has objects of its own, and a closed context leaves none, as with the kernel. What a
program closes does not disturb its NIC."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.exact_lab import EXACT
from tests.support.lab_fabrics import clos_spec
from tests.support.user import wait
from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_programs import ProgramsLab, programs_lab

pytestmark = [needs_verbs, pytest.mark.usefixtures("lab_machine")]


@pytest.fixture(scope="module")
def processes(open_folder: Path) -> str:
    return compiled("processes", open_folder)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("child_uses_parents", id="child polls, posts to and destroys its parent's"),
        pytest.param("child_of_fork_without_handlers", id="_Fork"),
        pytest.param("child_of_a_system_call", id="clone by syscall()"),
        pytest.param("child_of_clone", id="clone"),
        pytest.param("all_files_closed", id="program closes all descriptors"),
        pytest.param("other_files_in_all_places", id="program's file has all descriptors"),
        pytest.param("no_descriptor_left", id="no descriptor is left"),
        pytest.param("event_that_is_acknowledged_late", id="event acknowledged late"),
        pytest.param("closed_contexts", id="8200 contexts with a PD each"),
        pytest.param("closed_with_everything", id="objects of every kind"),
    ],
)
def test_others_are_not_disturbed(lab: ProgramsLab, processes: str, case: str) -> None:
    assert lab.prints("h1", processes, case) == ""


def test_end_of_the_lab_is_an_error_of_the_device(open_folder: Path, processes: str) -> None:
    with programs_lab(open_folder, clos_spec(), *EXACT) as lab:
        program = lab.start("h1", processes, "waits_for_event")
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        lab.user.run_emu("down")
        assert wait(program).out == "Input/output error\n"


def test_unmapped_memory_is_refused_with_a_reason(lab: ProgramsLab, processes: str) -> None:
    ended = lab.run("h1", "env", "EMU_VERBS_DEBUG=1", processes, "nowhere")
    assert ended.code == 0, ended.err
    assert "4096 bytes from 0 are not mapped as a whole" in ended.err
