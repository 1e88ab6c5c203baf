"""What a live run refuses before it starts anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from emu.cli.main import cli
from emu.errors import UsageError
from emu.runtime.real import RealRunner
from emu.spec.model import load_spec


def test_the_real_clock_does_not_elide_payload(tmp_path: Path) -> None:
    """Packets on interfaces have all their bytes; the remedy is in the error."""
    spec = load_spec(Path("topologies/pair.emu.yml"), ["payload=elided"])
    with pytest.raises(UsageError, match=r"--clock virtual, or --set payload=real"):
        RealRunner().run(spec, out=tmp_path)


@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_results_that_could_not_be_written_are_not_begun(tmp_path: Path, clock: str) -> None:
    """The run that they would come from is as long as it likes."""
    (tmp_path / "file").touch()
    out = tmp_path / "file/out"
    ended = CliRunner().invoke(
        cli, ["run", "topologies/pair.emu.yml", "--clock", clock, "--out", str(out)]
    )
    assert isinstance(ended.exception, UsageError)
    assert str(ended.exception) == (
        f"{out}: nothing can be written there (Not a directory); choose another --out"
    )
