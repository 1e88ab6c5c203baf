from __future__ import annotations

from emu.words import counted, listed, shortened


def test_lists_have_their_commas_and_an_and() -> None:
    assert [listed("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


def test_long_lists_say_how_many_more() -> None:
    names = [f"h{n}" for n in range(1, 3841)]
    assert shortened(names, 2) == listed(names, 2) == "h1, h2 and 3,838 more"
    assert (shortened(names[:2], 2), listed(names[:2], 2)) == ("h1, h2", "h1 and h2")


def test_one_is_singular() -> None:
    assert (counted(1, "port"), counted(2048, "port")) == ("1 port", "2,048 ports")
