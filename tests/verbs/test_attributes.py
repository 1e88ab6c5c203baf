"""ibv_modify_qp and ibv_create_ah refuse what the kernel refuses, by the table of
ibv_modify_qp(3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.verbs_compile import compiled, needs_verbs
from tests.support.verbs_programs import ProgramsLab

pytestmark = [needs_verbs, pytest.mark.usefixtures("lab_machine")]


@pytest.fixture(scope="module")
def attributes(open_folder: Path) -> str:
    return compiled("attributes", open_folder)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("table", id="every attribute, missing or too many"),
        pytest.param("unknown", id="unknown bits and states"),
        pytest.param("wrong_values", id="port, P_Key index, GID index, present state"),
        pytest.param("address_handles", id="port and GID index of an address handle"),
    ],
)
def test_wrong_attributes_are_refused(lab: ProgramsLab, attributes: str, case: str) -> None:
    assert lab.prints("h1", attributes, case) == ""


def test_refusal_names_every_wrong_attribute(lab: ProgramsLab, attributes: str) -> None:
    ended = lab.run("h1", "env", "EMU_VERBS_DEBUG=1", attributes, "reasons")
    assert ended.code == 0, ended.err
    step = "ibv_modify_qp from RESET to INIT"
    assert f"{step} needs IBV_QP_ACCESS_FLAGS IBV_QP_PKEY_INDEX\n" in ended.err
    assert f"{step} does not take IBV_QP_QKEY\n" in ended.err
