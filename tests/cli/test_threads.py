"""`--threads` of each verb that runs the virtual clock: as many threads, and the same output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from emu.cli.main import cli
from emu.errors import UsageError
from emu.runtime.virtual import VirtualFabric

FABRIC = "topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}\n"
NCCL = ("nccl", "all_reduce", "-b", "4K", "-e", "8K", "-f", "2", "--quiet", "--spec")
PERF = ("perf", "write_bw", "-n", "20")


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads of each run so far."""
    used: list[int] = []

    def counted(*given: Any, threads: int, **named: Any) -> VirtualFabric:
        used.append(threads)
        return VirtualFabric(*given, threads=threads, **named)

    monkeypatch.setattr("emu.runtime.virtual.VirtualFabric", counted)
    return used


@pytest.fixture
def fabric(tmp_path: Path) -> str:
    path = tmp_path / "fabric.emu.yml"
    path.write_text(FABRIC)
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder with a result for these clocks."""

    def made(*clocks: str) -> Path:
        specs = tmp_path / "specs"
        specs.mkdir()
        (specs / "pair.emu.yml").write_text(
            f"{FABRIC}name: pair\n"
            "traffic: [{name: pair, pattern: pair, from: h1, to: h4, size: 64KB}]\n"
            "about: {id: A1, title: one flow, expected: it ends, source: derived, "
            f"clocks: [{', '.join(clocks)}]}}\n"
            "verify: [{completed: all}]\n"
        )
        return specs

    return made


def emu(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)))


@pytest.mark.parametrize(("verb", "runs"), [(NCCL, 2), (PERF, 1)], ids=["nccl", "perf"])
def test_the_output_is_the_same(
    verb: tuple[str, ...], runs: int, fabric: str, threads: list[int]
) -> None:
    on_one, on_two = (emu(*verb, fabric, "--threads", count) for count in ("1", "2"))
    assert on_one.exit_code == 0, on_one.output
    assert on_one.stdout == on_two.stdout
    assert threads == [1] * runs + [2] * runs


def test_results_are_run_with_them(
    folder: Callable[..., Path], tmp_path: Path, threads: list[int]
) -> None:
    """Without --clock, they ask for the virtual clock."""
    specs = folder("virtual", "exact")
    ended = emu("results", specs, "--threads", "2", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.output
    assert "virtual clock: the one that runs on several threads" in ended.stderr
    assert threads == [2]


@pytest.mark.parametrize("verb", [NCCL, PERF], ids=["nccl", "perf"])
def test_other_clocks_refuse_them(verb: tuple[str, ...], fabric: str) -> None:
    ended = emu(*verb, fabric, "--threads", "2", "--clock", "exact")
    assert isinstance(ended.exception, UsageError)
    assert str(ended.exception).startswith("--threads: only packets on the virtual clock")
    assert ended.stdout == ""


def test_results_without_the_virtual_clock_refuse_them(folder: Callable[..., Path]) -> None:
    ended = emu("results", folder("exact"), "--threads", "2", "--clock", "exact")
    assert isinstance(ended.exception, UsageError)
    assert str(ended.exception).startswith("--threads: no run of ")
