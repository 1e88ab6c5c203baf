"""Varied keys, as Optuna draws them."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("optuna", reason="needs Optuna (emu[sweep])")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from emu.sweeps.values import Axis, values_of
from emu.tuning.parameters import Parameter, parameter

KMIN = "switches.ecn.kmin"


def made(key: str, text: str) -> Parameter:
    return parameter(Axis(key, values_of(text, "--vary")))


def test_a_wide_range_is_drawn_on_a_logarithmic_scale() -> None:
    assert made(KMIN, "20KB..400KB").distribution == FloatDistribution(20, 400, log=True)
    assert made(KMIN, "20KB..100KB").distribution == FloatDistribution(20, 100)


def test_whole_numbers_stay_whole() -> None:
    own = made("hosts.nic.roce_cc_ecn.rpg_ai_rate", "5..500")
    assert own.distribution == IntDistribution(5, 500, log=True)
    assert own.value(123) == 123


def test_words_and_ranges_with_steps_are_lists() -> None:
    assert made("hosts.nic.cc", "dcqcn,swift").distribution == CategoricalDistribution(
        ["dcqcn", "swift"]
    )
    stepped = made(KMIN, "20KB..40KB/3")
    assert stepped.distribution == CategoricalDistribution(["20KB", "30KB", "40KB"])
    assert stepped.value("30KB") == "30KB"


def test_a_drawn_number_has_three_digits_and_stays_in_the_range() -> None:
    own = made(KMIN, "20KB..399.9KB")
    assert own.value(123.456) == "123KB"
    assert own.value(399.89) == "399.9KB"


@pytest.mark.parametrize(
    ("key", "text", "value", "drawn"),
    [
        (KMIN, "20KB..400KB", "100000B", 100),
        (KMIN, "20KB..1MB", "100KB", 100_000),
        (KMIN, "20KB..400KB", "1MB", None),
        (KMIN, "20KB..400KB", "auto", None),
        ("switches.ecn.pmax", "0.01..1", "20%", 0.2),
        ("hosts.nic.dcqcn.rai", "5Mbit..1Gbit", "40Mbit", 40_000_000),
        ("hosts.nic.roce_cc_ecn.rpg_ai_rate", "5..500", 5, 5),
        ("hosts.nic.cc", "dcqcn,swift", "swift", "swift"),
        ("hosts.nic.cc", "dcqcn,swift", "none", None),
    ],
)
def test_a_known_value_can_be_drawn_first(key: str, text: str, value: Any, drawn: Any) -> None:
    own = made(key, text)
    found = own.drawn(value)
    assert found == (
        None if drawn is None else pytest.approx(drawn) if key != "hosts.nic.cc" else drawn
    )
    if drawn is not None:
        assert own.column.cell(own.value(found)) == own.column.cell(value)
