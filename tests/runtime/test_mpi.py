"""A fabric over several processes, which mpirun starts, gives the same files as one process."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import lists

from emu.bindings.partition import partition
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import Spec, load_spec
from tests.runtime.test_conservation import specs as losing_fabrics
from tests.runtime.test_parts import DROPPING
from tests.runtime.test_properties import specs as pausing_fabrics
from tests.support.limits import examples
from tests.support.mpi_run import MpiRun
from tests.support.small_fabrics import shortest_paths, spec_of

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun") is None or importlib.util.find_spec("mpi4py") is None,
    reason="needs mpirun and mpi4py (apt install python3-mpi4py openmpi-bin)",
)

ROOT = Path(__file__).parents[2]
TOPOLOGIES = ROOT / "topologies"
_SECONDS = 120
_MPIRUN = (
    *("mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"),
    *(("--allow-run-as-root",) if os.geteuid() == 0 else ()),
)
LIMIT_PS = 200_000_000
"""Emulated time of a run at most: windows take longer on processes than in one."""


def mpirun(
    ranks: int, *command: str, seconds: float = _SECONDS
) -> subprocess.CompletedProcess[str]:
    """Runs a command on so many ranks. Every one uses this Python."""
    return subprocess.run(
        [*_MPIRUN, "-n", str(ranks), sys.executable, "-m", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def shipped(name: str, variant: str = "", **more: Any) -> MpiRun:
    """`more`: as for `short_run`."""
    spec = load_spec(TOPOLOGIES / f"{name}.emu.yml")
    spec = spec.variants()[variant] if variant else spec
    return short_run(f"{name}-{variant}", spec, **more)


def short_run(
    name: str, spec: Spec, *, opensm: bool = False, limit_ps: int = LIMIT_PS, threads: int = 1
) -> MpiRun:
    """`opensm`: it makes InfiniBand's routes."""
    limit_ps = min(limit_ps, spec.time_limit_ps)
    subnet = None
    if spec.fabric_kind.has_subnet_manager and not opensm:
        subnet = shortest_paths(spec.topology.build())
    short = spec.model_copy(update={"time_limit_ps": limit_ps})
    return MpiRun(name.replace("/", "-"), short, subnet, threads)


def files_of(folder: Path) -> dict[str, Any]:
    """The results in a folder: the summary without the wall-clock time, other files as they are."""
    summary = json.loads((folder / "summary.json").read_text())
    del summary["wall_seconds"]
    others = {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.suffix in {".npz", ".pcapng", ".erf", ".csv"}
    }
    return {"summary": summary, **others}


def expect_same(ranks: int, runs: Sequence[MpiRun], folder: Path) -> None:
    """One mpirun does all runs, since its start takes longer than most of them."""
    file, many = folder / "runs", folder / "many"
    file.write_bytes(pickle.dumps(list(runs)))
    done = mpirun(ranks, "tests.support.mpi_run", str(file), str(many))
    assert done.returncode == 0, done.stderr
    expect_files_of_one_process(runs, many, folder / "one")


def expect_files_of_one_process(runs: Sequence[MpiRun], many: Path, one: Path) -> None:
    """`many`: the results of several processes; `one`: a folder for those of one."""
    for run in runs:
        run.write(VirtualRunner(run.subnet, threads=1), one)
        for folder in (run.name, f"{run.name}/so-far"):
            expected, found = files_of(one / folder), files_of(many / folder)
            assert list(found) == list(expected), folder
            for name, content in expected.items():
                assert found[name] == content, (folder, name)


def test_two_ranks(tmp_path: Path) -> None:
    runs = [
        shipped("incast", "roce-lossy"),
        shipped("incast", "ib"),
        shipped("permutation", threads=2),
        shipped("all-reduce", "ring", limit_ps=LIMIT_PS // 4),
        shipped("results/captured", "marked"),
        shipped("results/pulled-spine"),
        shipped("results/credit-loop", "minhop", limit_ps=3 * LIMIT_PS),
        short_run("dropping", spec_of(DROPPING)),
    ]
    expect_same(2, runs, tmp_path)


def test_four_ranks(tmp_path: Path) -> None:
    runs = [
        shipped("incast", "ib", opensm=True),
        shipped("results/pfc-deadlock", "stuck", limit_ps=3 * LIMIT_PS),
        shipped("storage", "roce-together"),
        shipped("training", "no-scale-up", limit_ps=LIMIT_PS // 4),
        short_run("dropping", spec_of(DROPPING)),
    ]
    expect_same(4, runs, tmp_path)
    stuck = json.loads((tmp_path / "many/results-pfc-deadlock-stuck/summary.json").read_text())
    assert stuck["deadlocks"], "the spec is there for the search for deadlocks"


@examples(1)
@given(
    losing=lists(losing_fabrics(), min_size=4, max_size=4),
    pausing=lists(pausing_fabrics(), min_size=4, max_size=4),
)
def test_random_fabrics(losing: list[Spec], pausing: list[Spec]) -> None:
    """Two ranks run those that have two parts."""
    runs = [
        short_run(f"drawn-{place}", spec)
        for place, spec in enumerate([*losing, *pausing])
        if partition(spec, spec.topology.build(), spec.workload(), 2, 1).parts == 2
    ]
    with TemporaryDirectory() as folder:
        expect_same(2, runs, Path(folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make network namespaces")
def test_two_machines(tmp_path: Path) -> None:
    """Ranks in network namespaces with addresses of their own, which TCP connects."""
    runs = [shipped("all-reduce", "ring", limit_ps=LIMIT_PS // 4)]
    file, many = tmp_path / "runs", tmp_path / "many"
    file.write_bytes(pickle.dumps(runs))
    script = ROOT / "tests/support/two_namespaces.sh"
    command = [sys.executable, "-m", "tests.support.mpi_run", str(file), str(many)]
    done = subprocess.run(
        [script, str(tmp_path), *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expect_files_of_one_process(runs, many, tmp_path / "one")


def test_rank_0_alone_prints(tmp_path: Path) -> None:
    spec = str(TOPOLOGIES / "pair.emu.yml")
    options = ("--clock", "virtual", "--out", str(tmp_path / "out"), "--quiet", "--json")
    done = mpirun(2, "emu.cli.main", "run", spec, *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == "pair"
    assert done.stderr.count("pair") == done.stderr.count("report.html") == 1, done.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("run", "nowhere.emu.yml", "--clock", "virtual"), "nowhere.emu.yml"),
        (("run", str(TOPOLOGIES / "pair.emu.yml"), "--clock", "real"), "use --clock virtual"),
        (("validate", str(TOPOLOGIES / "pair.emu.yml")), "leave mpirun out"),
    ],
    ids=["no spec", "real clock", "another verb"],
)
def test_errors_are_printed_once(arguments: tuple[str, ...], error: str) -> None:
    done = mpirun(2, "emu.cli.main", *arguments)
    assert done.returncode == 2
    assert done.stderr.count(error) == 1, done.stderr


def test_more_ranks_than_parts() -> None:
    done = mpirun(4, "emu.cli.main", "run", str(TOPOLOGIES / "pair.emu.yml"), "--clock", "virtual")
    assert done.returncode == 2
    assert done.stderr.count("use mpirun -n") == 1, done.stderr


def test_missing_mpi4py(tmp_path: Path) -> None:
    """Ranks say who they are, what is missing, and which packages have it."""
    (tmp_path / "mpi4py.py").write_text("raise ImportError('hidden by a test')\n")
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [
            *_MPIRUN,
            "-n",
            "2",
            sys.executable,
            "-m",
            "emu.cli.main",
            "run",
            "x",
            "--clock",
            "virtual",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 3
    assert "rank 0 on " in done.stderr or "rank 1 on " in done.stderr
    assert "python3-mpi4py" in done.stderr


def test_compare(tmp_path: Path) -> None:
    """Every variant runs over the ranks, which rank 0 compares."""
    spec = str(TOPOLOGIES / "results/captured.emu.yml")
    names = {}
    for ranks in (1, 2):
        out = tmp_path / str(ranks)
        options = ("--clock", "virtual", "--out", str(out), "--quiet", "--json")
        done = mpirun(ranks, "emu.cli.main", "compare", spec, *options)
        assert done.returncode == 0, done.stderr
        names[ranks] = list(json.loads(done.stdout)["runs"])
    assert names[1] == names[2]
    for name in names[1]:
        assert files_of(tmp_path / "1" / name) == files_of(tmp_path / "2" / name)


@pytest.mark.parametrize("victim", [0, 1])
def test_rank_that_dies_ends_the_others(victim: int, tmp_path: Path) -> None:
    """mpirun says which one died, and none is left."""
    assert f"rank {victim}" in end_of_long_run(victim, signal.SIGKILL, tmp_path)


@pytest.mark.parametrize("victim", [0, 1])
def test_stopped_rank_ends_the_run(victim: int, tmp_path: Path) -> None:
    """Another rank says which one has stopped, and none is left."""
    said = end_of_long_run(victim, signal.SIGSTOP, tmp_path)
    assert f"rank {1 - victim} on " in said
    assert f": rank {victim} on " in said
    assert "has been silent for 5 s" in said


def end_of_long_run(victim: int, by: signal.Signals, out: Path) -> str:
    """What a run over two ranks prints when one gets a signal. Both ranks must then end."""
    with subprocess.Popen(
        [*_MPIRUN, "-n", "2", sys.executable, "-m", "tests.support.mpi_long_run", str(out)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        assert run.stdout is not None
        next(line for line in run.stdout if line.startswith("at "))  # it is under way
        ranks = dict(_ranks_of(run.pid))
        assert sorted(ranks) == [0, 1]
        ends = {os.pidfd_open(pid) for pid in ranks.values()}
        os.kill(ranks[victim], by)
        said, _ = run.communicate(timeout=_SECONDS)
    assert run.returncode != 0
    for end in ends:  # readable once the process has ended
        assert select.select([end], [], [], _SECONDS)[0]
        os.close(end)
    return said


def _ranks_of(parent: int) -> Iterator[tuple[int, int]]:
    """The ranks that an mpirun has started: number -> process."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    for pid in map(int, children):
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        values = dict(word.split(b"=", 1) for word in words if b"=" in word)
        yield int(values[b"OMPI_COMM_WORLD_RANK"]), pid
