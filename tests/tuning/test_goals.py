"""Names of figures, goals and constraints."""

from __future__ import annotations

from math import inf

import pytest

from emu.errors import UsageError
from emu.tuning.goals import Wish, bound_of, figure_of, resolved

KNOWN = [
    "last_completion_ns",
    "pause_frames",
    "gold.fct_slowdown_p99",
    "gold.median_goodput_bps",
    "bronze.fct_slowdown_p99",
    "bronze.median_goodput_bps",
    "drives.read_latency_p99_ns",
    "drives.write_latency_p99_ns",
]
ROW = {
    "pause_frames": 3,
    "last_completion_ns": 2_000_000,
    "gold.fct_slowdown_p99": 4.0,
    "bronze.fct_slowdown_p99": 9.0,
    "gold.median_goodput_bps": 40e9,
    "bronze.median_goodput_bps": 10e9,
}


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("last_completion_ns", ["last_completion_ns"]),
        ("last_completion", ["last_completion_ns"]),
        ("gold.fct_slowdown.p99", ["gold.fct_slowdown_p99"]),
        ("gold.fct_slowdown_p99", ["gold.fct_slowdown_p99"]),
        ("fct_slowdown.p99", ["gold.fct_slowdown_p99", "bronze.fct_slowdown_p99"]),
        ("goodput", ["gold.median_goodput_bps", "bronze.median_goodput_bps"]),
        ("read_latency.p99", ["drives.read_latency_p99_ns"]),
    ],
)
def test_a_name_means_its_columns(name: str, columns: list[str]) -> None:
    assert list(figure_of(name, KNOWN, "--minimise").columns) == columns


def test_a_name_of_two_figures_is_refused_with_both() -> None:
    with pytest.raises(UsageError, match="read_latency_p99_ns and write_latency_p99_ns"):
        figure_of("latency.p99", KNOWN, "--minimise")


def test_mistakes_in_all_names_are_named_at_once() -> None:
    with pytest.raises(UsageError) as error:
        resolved(
            [Wish("last_completion_n", False, "--minimise")],
            [bound_of("pause_frame=0", "--subject-to"), bound_of("goodput>=fast", "--subject-to")],
            KNOWN,
        )
    text = str(error.value)
    assert "did you mean 'last_completion_ns'" in text
    assert "did you mean 'pause_frames'" in text
    assert "'fast' is no limit for it; write it like goodput>=40Gbit" in text


def test_the_worst_entry_counts() -> None:
    (p99, goodput), _ = resolved(
        [Wish("fct_slowdown.p99", False, "m"), Wish("goodput", True, "m")], [], KNOWN
    )
    assert p99.value(ROW) == 9.0
    assert goodput.value(ROW) == 10e9
    assert goodput.gain(own=10e9, other=8e9) == 2e9
    assert p99.gain(own=9.0, other=8.0) == -1.0


def test_a_run_without_an_entry_has_no_value() -> None:
    (p99,), _ = resolved([Wish("fct_slowdown.p99", False, "m")], [], KNOWN)
    assert p99.value(ROW | {"gold.fct_slowdown_p99": None}) is None


@pytest.mark.parametrize(
    ("text", "excess"),
    [
        ("pause_frames=0", 3),
        ("pause_frames<=3", 0),
        ("pause_frames <= 2", 1),
        ("last_completion<=1.5ms", 500_000),
        ("goodput>=20Gbit", 10e9),
        ("gold.goodput>=20Gbit", 0),
    ],
)
def test_a_constraint_knows_by_how_much_it_is_violated(text: str, excess: float) -> None:
    name = text.replace("gold.goodput", "gold.median_goodput")
    _, (own,) = resolved([], [bound_of(name, "--subject-to")], KNOWN)
    assert own.excess(ROW) == excess


def test_a_missing_figure_violates_a_constraint() -> None:
    _, (own,) = resolved([], [bound_of("pause_frames=0", "--subject-to")], KNOWN)
    assert own.excess({}) == inf


@pytest.mark.parametrize("text", ["pause_frames", "=0", "pause_frames<0", "pause_frames="])
def test_a_text_without_sign_or_limit_is_no_constraint(text: str) -> None:
    with pytest.raises(UsageError, match="write it like pause_frames=0"):
        bound_of(text, "--subject-to")
