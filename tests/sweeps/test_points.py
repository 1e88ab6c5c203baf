"""Grids, Latin hypercubes and lists of points."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.errors import UsageError
from emu.sweeps.points import combined, grid, in_file, latin_hypercube
from emu.sweeps.values import Axis, values_of

AXES = [
    Axis("kmin", values_of("0..1000", "--vary kmin")),
    Axis("cc", ("dcqcn", "none")),
]


def test_a_grid_has_every_combination() -> None:
    points = grid([Axis("a", (1, 2)), Axis("b", ("x", "y", "z"))])
    assert points[:2] == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}]
    assert len({(point["a"], point["b"]) for point in points}) == 6


def test_no_keys_are_one_point() -> None:
    assert grid([]) == [{}]


def test_huge_grids_are_refused() -> None:
    axes = [Axis(name, values_of("1..1000/1000", name)) for name in "abc"]
    with pytest.raises(UsageError, match="1,000,000,000 combinations"):
        grid(axes)


def test_random_points_are_a_latin_hypercube() -> None:
    """Each twentieth of the range has one of 20 values, and each word half of the points."""
    pytest.importorskip("scipy", reason="needs scipy (emu[sweep])")
    points = latin_hypercube(AXES, 20, seed=3)
    assert sorted(int(point["kmin"] / 50.0001) for point in points) == list(range(20))
    assert sorted(point["cc"] for point in points) == ["dcqcn"] * 10 + ["none"] * 10


def test_random_points_follow_from_the_seed() -> None:
    pytest.importorskip("scipy", reason="needs scipy (emu[sweep])")
    assert latin_hypercube(AXES, 9, seed=3) == latin_hypercube(AXES, 9, seed=3)
    assert latin_hypercube(AXES, 9, seed=3) != latin_hypercube(AXES, 9, seed=4)


def test_a_file_has_keys_and_values(tmp_path: Path) -> None:
    """An empty cell leaves the key as it is in the spec."""
    file = tmp_path / "points.csv"
    file.write_text('kmin,traffic.incast.from\n20KB,"[h2, h3]"\n50KB,\n\n')
    assert in_file(file) == [
        {"kmin": "20KB", "traffic.incast.from": ["h2", "h3"]},
        {"kmin": "50KB"},
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "has no points"),
        ("kmin\n", "has no points"),
        ("kmin,kmin\n1,2\n", "kmin is there twice"),
        ("a,b\n1\n", "line 2 has 1 cells, and the first line 2"),
        ("a..b\n1\n", "'a..b' is no key"),
        ("a\n[1\n", "its value"),
    ],
)
def test_mistakes_of_a_file_name_it(tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"points\.csv") as caught:
        in_file(file)
    assert error in str(caught.value)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.csv: cannot be read"):
        in_file(tmp_path / "none.csv")


def test_a_list_and_a_grid_are_combined() -> None:
    assert combined([[{"a": 1}, {"a": 2}], [{"b": 3}]]) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]
