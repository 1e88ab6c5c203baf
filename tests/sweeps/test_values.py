"""The values of `--vary`: lists, ranges and their mistakes."""

from __future__ import annotations

import pytest

from emu.errors import UsageError
from emu.sweeps.values import Axis, Span, axis_of, scaled, values_of


def listed(text: str) -> list[object]:
    return axis_of(f"key={text}").listed()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("20KB,50KB", ["20KB", "50KB"]),
        ("1,2.5,off,true", [1, 2.5, "off", True]),
        ("[a, b],[c]", [["a", "b"], ["c"]]),
        ("{rate: 1Gbit, delay: 1us},5", [{"rate": "1Gbit", "delay": "1us"}, 5]),
        ("'a,b',c", ["a,b", "c"]),
        ("h2-h8", ["h2-h8"]),
    ],
)
def test_lists_are_yaml_between_commas(text: str, values: list[object]) -> None:
    assert listed(text) == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("20KB..400KB/5", ["20KB", "115KB", "210KB", "305KB", "400KB"]),
        ("500ns..2us/4", ["500ns", "1us", "1500ns", "2us"]),
        ("1..5/3", [1, 3, 5]),
        ("1..2/5", [1, 2]),
        ("0.5..1/3", [0.5, 0.75, 1.0]),
        ("10%..20%/2", ["10%", "20%"]),
        ("1m..1km/2", ["1m", "1000m"]),
        ("500Mbit..1Gbit/2", ["500Mbit", "1Gbit"]),
    ],
)
def test_ranges_have_evenly_spaced_values(text: str, values: list[object]) -> None:
    """Whole numbers stay whole, so 1..2 in five steps has two values."""
    assert listed(text) == values


def test_a_range_has_any_value_in_between() -> None:
    span = values_of("20KB..400KB", "--vary key")
    assert isinstance(span, Span)
    assert [span.at(share) for share in (0, 0.25, 1)] == ["20KB", "115KB", "400KB"]
    assert Axis("key", ("a", "b", "c")).at(0.99) == "c"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("key", "no key with values; write it like --vary switches.ecn.kmin=20KB"),
        ("key=", "has no value"),
        ("key=1,,2", "has no value"),
        ("key=9..2/3", "its first value must be below its last"),
        ("key=20KB..4us/3", "no quantities of one kind"),
        ("key=1..9/1", "/1 is no number of values"),
        ("key=[1", "key: its value"),
    ],
)
def test_mistakes_say_what_to_write(text: str, error: str) -> None:
    with pytest.raises(UsageError, match=r"^--vary") as caught:
        axis_of(text)
    assert error in str(caught.value)


def test_a_range_without_steps_is_no_grid() -> None:
    with pytest.raises(UsageError, match=r"write 1\.\.9/5"):
        listed("1..9")


@pytest.mark.parametrize(
    ("value", "doubled", "halved"),
    [
        ("20KB", "40KB", "10KB"),
        ("55us", "110us", "27500ns"),
        ("40Mbit", "80Mbit", "20Mbit"),
        (5, 10, 3),
        (1, 2, 1),
        (0.5, 1.0, 0.25),
    ],
)
def test_a_scaled_value_keeps_its_kind(value: object, doubled: object, halved: object) -> None:
    """Whole numbers are rounded, halves upwards."""
    assert (scaled(value, 2), scaled(value, 0.5)) == (doubled, halved)


def test_a_word_cannot_be_scaled() -> None:
    with pytest.raises(ValueError, match="no quantity"):
        scaled("auto", 2)
