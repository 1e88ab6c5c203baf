"""Every command in docs/ works as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.doc_blocks import Block, blocks, run


@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", [one for one in blocks() if not one.is_for_lab], ids=str)
def test_documented_commands_run(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    run(block, tmp_path)


def test_every_block_has_commands() -> None:
    assert [str(block) for block in blocks() if not block.commands] == []
