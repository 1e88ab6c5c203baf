"""Live runs that are refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from emu.cli.main import cli
from emu.errors import UsageError
from emu.runtime.real import RealRunner
from emu.spec.model import load_spec


def test_the_real_clock_refuses_elided_payload(tmp_path: Path) -> None:
    """Packets on interfaces have all their bytes. The error names the remedy."""
    spec = load_spec(Path("topologies/pair.emu.yml"), ["payload=elided"])
    with pytest.raises(UsageError, match=r"--clock virtual, or --set payload=real"):
        RealRunner().run(spec, out=tmp_path)


@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_an_unwritable_output_folder_is_refused_first(tmp_path: Path, clock: str) -> None:
    """A long run would otherwise be lost."""
    (tmp_path / "file").touch()
    out = tmp_path / "file/out"
    ended = CliRunner().invoke(
        cli, ["run", "topologies/pair.emu.yml", "--clock", clock, "--out", str(out)]
    )
    assert isinstance(ended.exception, UsageError)
    assert str(ended.exception) == (
        f"{out}: nothing can be written there (Not a directory); choose another --out"
    )
