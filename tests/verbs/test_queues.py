"""Queue pairs that end, or begin anew, while completions wait: these leave their queue, as those of
mlx5 do, and every place of a queue of requests is free again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_programs import ProgramsLab

pytestmark = [needs_verbs, pytest.mark.usefixtures("lab_machine")]


@pytest.fixture(scope="module")
def queues(open_folder: Path) -> str:
    return compiled("queues", open_folder)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("reset_drops_completions", id="reset drops its own completions only"),
        pytest.param("recycled", id="flushed receives give places back at reset"),
        pytest.param("destroyed_with_srq", id="destroyed queue pair gives its SRQ places back"),
        pytest.param("destroyed_in_a_message", id="so does one in the middle of a message"),
    ],
)
def test_no_place_of_a_queue_is_lost(lab: ProgramsLab, queues: str, case: str) -> None:
    assert lab.prints("h1", queues, case) == ""
