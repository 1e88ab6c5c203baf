"""Runs one by one: from the folder, on workers, and once where two ask for the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import emu

pytest.importorskip("distributed", reason="needs Dask (emu[sweep])")
pytest.importorskip("pyarrow", reason="needs pyarrow (emu[sweep])")

from emu.sweeps.evaluate import Evaluator
from emu.sweeps.plan import Basis, PlannedRun, base_of
from emu.sweeps.store import Row, Store
from emu.sweeps.units import key_column

pytestmark = pytest.mark.timeout(300)
KMIN = "switches.ecn.kmin"


@pytest.fixture(scope="module")
def basis() -> Basis:
    spec = emu.Spec(
        topology={"kind": "leaf-spine", "spines": 1, "leaves": 1, "hosts_per_leaf": 3},
        switches={"pfc": {}, "ecn": {"kmax": "100KB"}},
        hosts={"nic": {"cc": "dcqcn"}},
        traffic=[
            {"name": "two", "pattern": "incast", "from": "h2-h3", "to": "h1", "size": "256KB"}
        ],
    )
    columns = [key_column(KMIN, ["1KB"])]
    return Basis("two", {"": base_of(spec)}, columns, "packets", (), "vary")


def evaluator(basis: Basis, folder: Path) -> Evaluator:
    return Evaluator(basis, Store(folder), workers=1, scheduler=None)


def results(used: Evaluator, count: int) -> Iterator[tuple[PlannedRun, Row]]:
    found: list[tuple[PlannedRun, Row]] = []
    while len(found) < count:
        found += used.ended()
    yield from found


def test_a_run_in_the_folder_starts_no_worker(basis: Basis, tmp_path: Path) -> None:
    run = basis.run(0, {KMIN: "20KB"}, 1)
    with evaluator(basis, tmp_path) as used:
        used.submit(run)
        ((_, first),) = results(used, 1)
        assert used.computed == 1
    with evaluator(basis, tmp_path) as used:
        used.submit(run)
        ((_, second),) = used.ended()
        assert (used.computed, used._pool) == (0, None)
    assert second == first
    assert second["switches.ecn.kmin_bytes"] == 20_000


def test_the_same_run_of_two_points_is_done_once(basis: Basis, tmp_path: Path) -> None:
    with evaluator(basis, tmp_path) as used:
        for point in (3, 4):
            used.submit(basis.run(point, {KMIN: "20KB"}, 1))
        rows = {run.point: row for run, row in results(used, 2)}
        assert used.computed == 1
    assert {point: row["point"] for point, row in rows.items()} == {3: 3, 4: 4}
    assert rows[3]["last_completion_ns"] == rows[4]["last_completion_ns"]


def test_a_run_with_an_error_has_a_row_that_says_so(basis: Basis, tmp_path: Path) -> None:
    with evaluator(basis, tmp_path) as used:
        used.submit(basis.run(0, {KMIN: "500KB"}, 1))
        ((_, row),) = results(used, 1)
    assert "kmin (500KB) is above kmax" in row["error"]
