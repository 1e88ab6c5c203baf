"""Inline data is for SEND and RDMA WRITE (ibv_post_send(3)). No request with it disappears."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_programs import ProgramsLab

pytestmark = [needs_verbs, pytest.mark.usefixtures("lab_machine")]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("fetches", id="READ and atomics refuse the flag"),
        pytest.param("extended_fetch", id="READ refuses ibv_wr_set_inline_data"),
        pytest.param("extended_flag", id="ibv_wr_set_sge overrules the flag"),
    ],
)
def test_inline_request_is_refused_or_completes(
    lab: ProgramsLab, open_folder: Path, case: str
) -> None:
    assert lab.prints("h1", compiled("inline", open_folder), case) == ""
