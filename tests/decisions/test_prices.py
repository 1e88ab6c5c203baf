"""What a fabric costs, counted by hand; files with mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

import emu
from emu.decisions.candidates import Candidate, candidates_of
from emu.decisions.prices import MissingPrices, bill_of, parts_left_out, read_prices
from emu.errors import UsageError

GBIT = 10**9
LINKS = {
    "host": {"rate": "100Gbit", "length": "3m"},
    "fabric": {"rate": "400Gbit", "length": "30m"},
}
TOPOLOGY = {"kind": "leaf-spine", "spines": 2, "leaves": 3, "hosts_per_leaf": 4, "links": LINKS}
"""12 hosts, 5 switches, 12 cables to hosts and 6 between switches, 24 ports of switches."""


def candidate(fabric: str) -> Candidate:
    traffic = [{"name": "t", "pattern": "pair", "from": "h1", "to": "h5", "size": "1MB"}]
    spec = emu.Spec(topology=TOPOLOGY, traffic=traffic, hosts={"gpus": 4})
    (own,), _ = candidates_of(spec, [fabric], [100 * GBIT])
    return own


def prices(folder: Path, text: str) -> Path:
    file = folder / "prices.yml"
    file.write_text(text)
    return file


def test_a_bill_counts_every_part(tmp_path: Path) -> None:
    file = prices(
        tmp_path,
        """
currency: EUR
items:
  - {item: nic, price: 10, watts: 1}
  - {item: cable, up_to: 3m, price: 2, watts: 0}
  - {item: cable, price: 30, watts: 4}
  - {item: port, rate: 100Gbit, price: 5, watts: 0}
  - {item: port, rate: 4x NDR, price: 50, watts: 0}
  - {item: switch, fabric: ib, price: 1000, watts: 100}
  - {item: switch, fabric: roce, price: 700, watts: 90}
  - {item: server, price: 9000, watts: 0}
energy: {price_per_kwh: 0.5, years: 2}
""",
    )
    bill = bill_of(candidate("ib"), read_prices(file))
    assert sorted((line.what, line.count, line.price) for line in bill.lines) == [
        ("cable, 100Gbit, 3m", 12, 24),
        ("cable, 400Gbit, 30m", 6, 180),
        ("nic, 100Gbit", 12, 120),
        ("port, 100Gbit", 12, 60),
        ("port, 400Gbit", 12, 600),
        ("server", 3, 27000),
        ("switch, 400Gbit", 5, 5000),
    ]
    assert bill.price == 120 + 24 + 180 + 12 * 5 + 12 * 50 + 5 * 1000 + 3 * 9000
    assert bill.watts == 12 * 1 + 6 * 4 + 5 * 100
    assert bill.energy == pytest.approx(536 / 1000 * 24 * 365 * 2 * 0.5)
    assert bill.total == bill.price + bill.energy
    roce = bill_of(candidate("roce-lossy"), read_prices(file))
    assert bill.price - roce.price == 5 * 300


def test_a_candidate_may_have_prices_of_its_own(tmp_path: Path) -> None:
    text = """
currency: EUR
items:
  - {item: nic, fabric: roce-lossy, price: 7}
  - {item: nic, price: 10}
"""
    read = read_prices(prices(tmp_path, text))
    assert bill_of(candidate("roce-lossy"), read).total == 84
    assert bill_of(candidate("roce-lossless"), read).total == 120
    assert parts_left_out(read) == ["cable", "port", "switch", "server"]


def test_a_part_that_no_item_fits_is_named(tmp_path: Path) -> None:
    text = """
currency: EUR
items: [{item: cable, up_to: 3m, price: 2}, {item: nic, fabric: ib, price: 1}]
"""
    read = read_prices(prices(tmp_path, text))
    with pytest.raises(MissingPrices) as caught:
        bill_of(candidate("roce-lossy"), read)
    assert caught.value.parts == ["cable, 400Gbit, 30m", "nic, 100Gbit"]


def test_what_is_left_out_does_not_count_as_0(tmp_path: Path) -> None:
    text = """
currency: EUR
items:
  - {item: nic, watts: 20}
  - {item: cable, price: 10}
"""
    with pytest.raises(UsageError, match=r"prices\.yml:4:5: items\.0\.price: is missing"):
        read_prices(prices(tmp_path, text))
    text = text.replace("watts: 20", "price: 1") + "energy: {price_per_kwh: 1, years: 1}\n"
    with pytest.raises(UsageError) as caught:
        read_prices(prices(tmp_path, text))
    assert [line.partition(": ")[2] for line in str(caught.value).splitlines()] == [
        "items.0: needs watts, because the file has energy",
        "items.1: needs watts, because the file has energy",
    ]


def test_all_mistakes_of_a_file_are_found_each_at_its_place(tmp_path: Path) -> None:
    file = prices(
        tmp_path,
        "currency: EUR\nitems:\n  - {item: nik, price: 1}\n  - {item: nic, prise: 1}\n"
        "  - {item: port, price: -1}\n  - {item: port, price: 1,000}\nenergi: 3\n",
    )
    with pytest.raises(UsageError) as caught:
        read_prices(file)
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        f"{file}:3:6",
        f"{file}:4:5",
        f"{file}:4:17",
        f"{file}:5:18",
        f"{file}:6:27",
        f"{file}:7:1",
    ]
    assert "did you mean 'nic'" in lines[0]
    assert "did you mean 'price'" in lines[2]
    assert "write 1,000 as 1000" in lines[4]
    assert "did you mean 'energy'" in lines[5]


@pytest.mark.parametrize(
    "text", ["", "[1, 2]", "currency: EUR\n", "a: [\n", "currency: 3\nitems: 4"]
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"prices\.yml"):
        read_prices(prices(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read"):
        read_prices(tmp_path / "none.yml")


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ("{item: nic, price: true}", "items.0.price"),
        ("{item: nic, price: 1e300}", "out of range"),
        ("{item: nic, price: '1,500'}", "items.0.price: must be a number"),
        ("{item: server, rate: 100Gbit, price: 1}", "a server has no rate of its own"),
        ("{item: nic, up_to: 3m, price: 1}", "only a cable has a length"),
    ],
)
def test_items_with_wrong_values_are_refused(tmp_path: Path, item: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_prices(prices(tmp_path, f"currency: EUR\nitems: [{item}]\n"))


@pytest.mark.parametrize("currency", ["''", '"a\\nb"', "' '", "a currency of many words"])
def test_a_currency_is_a_short_word(tmp_path: Path, currency: str) -> None:
    with pytest.raises(UsageError, match=r"currency"):
        read_prices(prices(tmp_path, f"currency: {currency}\nitems: [{{item: nic}}]\n"))


def test_a_file_of_something_else_is_not_printed_as_a_whole(tmp_path: Path) -> None:
    text = "".join(f"word{number}: 1\n" for number in range(100))
    with pytest.raises(UsageError) as caught:
        read_prices(prices(tmp_path, text))
    assert len(str(caught.value).splitlines()) == 9
    assert "more like these" in str(caught.value)


def test_small_amounts_have_decimals(tmp_path: Path) -> None:
    text = "currency: kEUR\nitems: [{item: nic, price: 0.25}]\n"
    bill = bill_of(candidate("ib"), read_prices(prices(tmp_path, text)))
    assert bill.money(bill.total) == "3.00 kEUR"
    assert bill.money(1234.5) == "1,234 kEUR"
