"""Stopped `emu compare` and `emu results` keep finished runs."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from emu.cli import compare, results
from emu.errors import FabricError
from emu.runtime.record import record

ROOT = Path(__file__).parents[2]
INCAST = str(ROOT / "topologies" / "incast.emu.yml")
FIVE = ["roce-lossy", "roce-pfc", "roce-dcqcn", "roce-mistuned", "ib"]


def stopped_at(run: int, by: BaseException) -> Callable[..., Any]:
    """A replacement for `record` that raises `by` at the given run."""
    made: list[str] = []

    def record_until(name: str, *args: Any, **options: Any) -> Any:
        if len(made) == run:
            raise by
        made.append(name)
        return record(name, *args, **options)

    return record_until


def compared(out: Path, monkeypatch: pytest.MonkeyPatch, run: int, by: BaseException) -> Result:
    monkeypatch.setattr(compare, "record", stopped_at(run, by))
    words = [INCAST, "--clock", "virtual", "--json", "--quiet", "--out", str(out)]
    return CliRunner().invoke(compare.command, words)


@pytest.mark.parametrize("by", [KeyboardInterrupt(), FabricError("the lab died")])
def test_a_stopped_comparison_keeps_finished_variants(
    by: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in table, document, page and folders, which also name the missing ones."""
    result = compared(tmp_path, monkeypatch, 2, by)
    document = json.loads(result.stdout)
    assert list(document["runs"]) == FIVE[:2]
    assert document["missing"] == FIVE[2:]
    assert json.loads((tmp_path / "comparison.json").read_text()) == document
    assert (
        "There is no result of roce-dcqcn, roce-mistuned, ib, which was stopped or failed."
        in result.stderr
    )
    assert (
        "There is no result of roce-dcqcn, roce-mistuned, ib, which was stopped or failed."
        in (tmp_path / "comparison.html").read_text()
    )
    assert {path.parent.name for path in tmp_path.glob("*/summary.json")} == set(FIVE[:2])
    assert result.exit_code != 0
    assert (result.exception is by) == isinstance(by, FabricError)  # click aborts otherwise


def test_sigterm_keeps_finished_variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM acts like Ctrl-C, and its handler is restored afterwards."""

    def terminated(name: str, *args: Any, **options: Any) -> Any:
        if name == FIVE[1]:
            signal.raise_signal(signal.SIGTERM)
        return record(name, *args, **options)

    monkeypatch.setattr(compare, "record", terminated)
    words = [INCAST, "--clock", "virtual", "--json", "--quiet", "--out", str(tmp_path)]
    before = signal.getsignal(signal.SIGTERM)
    result = CliRunner().invoke(compare.command, words)
    document = json.loads(result.stdout)
    assert (list(document["runs"]), document["missing"]) == (FIVE[:1], FIVE[1:])
    assert json.loads((tmp_path / "comparison.json").read_text()) == document
    assert "There is no result of roce-pfc" in (tmp_path / "comparison.html").read_text()
    assert result.exit_code != 0
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_comparison_stopped_at_once_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = compared(tmp_path, monkeypatch, 0, KeyboardInterrupt())
    assert result.exit_code != 0
    assert result.stdout == ""
    assert not list(tmp_path.iterdir())


def test_stopped_results_write_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "specs"
    folder.mkdir()
    for name in ("marking-curve", "qps-over-uplinks"):
        shutil.copy(ROOT / "topologies" / "results" / f"{name}.emu.yml", folder)
    monkeypatch.setattr(results, "record", stopped_at(1, KeyboardInterrupt()))
    page = tmp_path / "page.md"
    words = [str(folder), "--quiet", "--page", str(page), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(results.command, words)
    assert result.exit_code != 0
    assert "--resume" in result.stderr
    assert not page.exists()
    assert len(list((tmp_path / "out").glob("*/*/*/summary.json"))) == 1


def test_quiet_prints_no_progress(tmp_path: Path) -> None:
    words = [INCAST, "--clock", "virtual", "--json", "--quiet", "--out", str(tmp_path)]
    assert "wall" not in CliRunner().invoke(compare.command, words).stderr
