"""Objects that change, their events, and acknowledgements, as libibverbs' manual pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_programs import ProgramsLab

pytestmark = [needs_verbs, pytest.mark.usefixtures("lab_machine")]


@pytest.fixture(scope="module")
def objects(open_folder: Path) -> str:
    return compiled("objects", open_folder)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("grown_cq", id="ibv_resize_cq keeps completions"),
        pytest.param("shared_queue", id="limit of an SRQ, and its last receive"),
        pytest.param("unacknowledged", id="an event delays destruction"),
        pytest.param("reset", id="reset gives receives back"),
        pytest.param("late_rts", id="first packet in RTR is an event"),
        pytest.param("too_many_regions", id="more regions than fit"),
        pytest.param("drained", id="sends that were begun end in SQD"),
    ],
)
def test_object_behaves_as_the_manual_says(lab: ProgramsLab, objects: str, case: str) -> None:
    assert lab.prints("h1", objects, case) == ""
