"""On the exact clock a program may wait by any call that says "not yet": time passes meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_programs import ProgramsLab

pytestmark = [needs_verbs, pytest.mark.usefixtures("lab_machine")]


@pytest.fixture(scope="module")
def not_yet(open_folder: Path) -> str:
    return compiled("not_yet", open_folder)


@pytest.mark.parametrize(
    "case",
    [
        "completion_event",
        "asynchronous_event",
        "state",
        "request_for_an_event",
        "place_for_a_send",
        "place_for_a_send_and_another_queue",
        "place_for_a_receive",
        "memory_between_registrations",
    ],
)
def test_time_passes_while_a_program_asks_again_and_again(
    lab: ProgramsLab, not_yet: str, case: str
) -> None:
    assert lab.prints("h1", "timeout", "60", not_yet, case) == ""
