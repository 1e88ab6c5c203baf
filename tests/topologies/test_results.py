"""Published results, as specs with their checks, come out on the virtual clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from emu.cli.main import cli

RESULTS = sorted((Path(__file__).parents[2] / "topologies" / "results").glob("*.emu.yml"))


@pytest.mark.parametrize("spec", RESULTS, ids=lambda path: path.name.removesuffix(".emu.yml"))
@pytest.mark.parametrize("verb", ["run", "compare"])
def test_the_result_comes_out(spec: Path, verb: str, tmp_path: Path) -> None:
    """Every check of the spec passes, and so do those of its variants."""
    done = CliRunner().invoke(cli, [verb, str(spec), "--clock", "virtual", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
