"""The file of prices, and what a fabric costs by it.

    currency: EUR
    items:
      - {item: nic, fabric: ib, rate: 400Gbit, price: 1000, watts: 25}
      - {item: cable, rate: 400Gbit, up_to: 3m, price: 100}
      - {item: cable, rate: 400Gbit, price: 700, watts: 16}
    energy: {price_per_kwh: 0.2, years: 4}

Of several items that fit a part, the first one counts. A kind of item that the file does not have
at all is not counted on any fabric; one that it has must fit every such part of every fabric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, Strict, ValidationError, model_validator

from emu.decisions.candidates import Candidate
from emu.errors import UsageError
from emu.regular import open_regular
from emu.spec.base import Model
from emu.spec.diagnostic import Diagnostic, lines
from emu.spec.document import MAX_BYTES, Unreadable, read
from emu.spec.pydantic_messages import reworded
from emu.spec.quantities import Length, Rate, named_like
from emu.units import write_length, write_rate

Part = Literal["nic", "cable", "port", "switch", "server"]
_HOURS_A_YEAR = 24 * 365
_MOST = 1e12
_MOST_FINDINGS = 8
"""That are shown of a file: one that is not of prices may have thousands."""
_Amount = Annotated[float, Strict(), Field(ge=0, le=_MOST)]


_Currency = Annotated[
    str, named_like(r"\S(?:[^\n]{0,14}\S)?", "up to 16 characters on one line, as EUR")
]


class Item(Model):
    """What one part costs."""

    item: Part = Field(
        description="The part: a NIC, a cable, a switch's port that has a cable, a switch, or a "
        "server with its GPUs."
    )
    fabric: str | None = Field(
        default=None, description="roce, ib or the name of a candidate; all fabrics unless given."
    )
    rate_bps: Rate | None = Field(
        default=None,
        alias="rate",
        description="The rate of the NIC, cable or port, or of a switch's fastest port; any unless "
        "given.",
    )
    up_to_ps: Length | None = Field(
        default=None, alias="up_to", description="The longest such cable; any unless given."
    )
    price: _Amount = Field(description="In the currency of the file; 0 if it comes with others.")
    watts: _Amount | None = Field(
        default=None, description="The power that it takes; all items need it if `energy` is given."
    )

    @model_validator(mode="after")
    def _has_what_its_part_has(self) -> Self:
        if self.item == "server" and self.rate_bps is not None:
            raise ValueError("a server has no rate of its own; leave rate out")
        if self.item != "cable" and self.up_to_ps is not None:
            raise ValueError("only a cable has a length; leave up_to out")
        return self


class Energy(Model):
    """What power costs."""

    price_per_kwh: _Amount = Field(description="In the currency of the file.")
    years: Annotated[float, Field(gt=0, le=100)] = Field(
        description="For which the fabric is bought."
    )


class Prices(Model):
    """A file of prices."""

    currency: Annotated[str, named_like(r"\S(?:[^\n]{0,14}\S)?", "a word of up to 16 letters")] = (
        Field(description="As EUR; it stands behind each price.")
    )
    items: tuple[Item, ...] = Field(min_length=1, description="The prices.")
    energy: Energy | None = Field(
        default=None, description="Adds the energy of all parts to the costs."
    )


@dataclass(frozen=True)
class BillLine:
    """Equal parts of a fabric."""

    part: Part
    what: str
    """As `cable, 400Gbit, 5m`."""
    count: int
    price: float
    """Of all of them."""
    watts: float
    """0 if it is not known."""


@dataclass(frozen=True)
class Bill:
    """What a fabric costs."""

    lines: tuple[BillLine, ...]
    currency: str
    energy: float
    """The price of its energy; 0 if the file has none."""

    @property
    def price(self) -> float:
        return sum(line.price for line in self.lines)

    @property
    def watts(self) -> float:
        return sum(line.watts for line in self.lines)

    @property
    def total(self) -> float:
        """Price and energy."""
        return self.price + self.energy

    def money(self, amount: float) -> str:
        """`1,200 EUR`; with two decimals if it is small."""
        return (
            f"{amount:,.0f} {self.currency}" if amount >= 100 else f"{amount:,.2f} {self.currency}"
        )


def read_prices(path: Path) -> Prices:
    """Reads a file of prices. Raises UsageError with all that is wrong, each at its place."""
    try:
        with open_regular(path) as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is not the name of a file ({error})") from None
    if not text.strip():
        raise UsageError(f"{path}: is empty; a file of prices has `currency:` and `items:`")
    try:
        document = read(text, str(path))
    except Unreadable as unreadable:
        raise UsageError(f"{unreadable.finding.place}: {unreadable}") from None
    findings = list(document.findings)
    prices = None
    try:
        prices = Prices.model_validate(document.data)
    except ValidationError as error:
        findings += map(_with_hint, reworded(error, _schema))
    else:
        findings += _without_watts(prices)
    if findings or prices is None:
        found = lines(findings, document.places)
        more = len(found) - _MOST_FINDINGS
        rest = [f"{path}: and {more} more like these"] if more > 0 else []
        raise UsageError("\n".join([*found[:_MOST_FINDINGS], *rest]))
    return prices


def _with_hint(finding: Diagnostic) -> Diagnostic:
    """YAML reads `{price: 1,000}` as a price of 1, and a key 000."""
    key = finding.path[-1] if finding.path else ""
    if isinstance(key, str) and key.isdigit():
        return replace(finding, text="unknown key; a number has no comma: write 1,000 as 1000")
    return finding


def _without_watts(prices: Prices) -> Iterator[Diagnostic]:
    for number, item in enumerate(prices.items):
        if prices.energy is not None and item.watts is None:
            yield Diagnostic(("items", number), "needs watts, because the file has energy")


@cache
def _schema() -> dict[str, Any]:
    return Prices.model_json_schema(by_alias=True)


class MissingPrices(Exception):
    """No item fits these parts of a candidate."""

    def __init__(self, parts: Sequence[str]) -> None:
        super().__init__(", ".join(parts))
        self.parts = parts


def bill_of(candidate: Candidate, prices: Prices) -> Bill:
    """What a candidate costs. Raises MissingPrices."""
    named = {item.item for item in prices.items}
    missing: list[str] = []
    rows: list[BillLine] = []
    for (part, rate_bps, delay_ps), count in sorted(_parts(candidate).items()):
        if part not in named:
            continue
        item = _item_for(candidate, prices, part, rate_bps, delay_ps)
        what = _in_words(part, rate_bps, delay_ps)
        if item is None:
            missing.append(what)
        else:
            watts = count * (item.watts or 0.0)
            rows.append(BillLine(part, what, count, count * item.price, watts))
    if missing:
        raise MissingPrices(missing)
    watts = sum(row.watts for row in rows)
    return Bill(tuple(rows), prices.currency, _energy(prices, watts))


def _energy(prices: Prices, watts: float) -> float:
    if prices.energy is None:
        return 0.0
    hours = _HOURS_A_YEAR * prices.energy.years
    return watts / 1000 * hours * prices.energy.price_per_kwh


_Key = tuple[Part, int, int]
"""A part with its rate in bits/s and its length as a delay in ps; 0 if it has none."""


def _parts(candidate: Candidate) -> Counter[_Key]:
    return Counter(_each_part(candidate))


def _each_part(candidate: Candidate) -> Iterator[_Key]:
    spec = candidate.spec
    topology = spec.topology.build()

    def rate_bps(port: Any) -> int:
        return int(topology.cable[port].rate_bps)

    for host in topology.host:
        yield "nic", rate_bps(topology.ports[host][0]), 0
    for cable in topology.cables:
        yield "cable", int(cable.rate_bps), cable.delay_ps
    for switch in topology.switch:
        ports = [rate_bps(port) for port in topology.ports[switch]]
        yield "switch", max(ports, default=0), 0
        for own in ports:
            yield "port", own, 0
    for _ in range(-(-len(topology.host) // (spec.hosts.gpus or 1))):
        yield "server", 0, 0


def _item_for(
    candidate: Candidate, prices: Prices, part: Part, rate_bps: int, delay_ps: int
) -> Item | None:
    names = (None, candidate.spec.fabric, candidate.fabric)
    for item in prices.items:
        fits = item.item == part and item.fabric in names
        fits = fits and (item.rate_bps is None or int(item.rate_bps) == rate_bps)
        if fits and (item.up_to_ps is None or delay_ps <= item.up_to_ps):
            return item
    return None


def _in_words(part: Part, rate_bps: int, delay_ps: int) -> str:
    if part == "server":
        return part
    length = f", {write_length(delay_ps)}" if part == "cable" else ""
    return f"{part}, {write_rate(rate_bps)}{length}"


def fabrics_named(prices: Prices) -> set[str]:
    """The fabrics that items name."""
    return {item.fabric for item in prices.items if item.fabric is not None}


def parts_left_out(prices: Prices) -> list[Part]:
    """The kinds of parts that the file does not have, so that nothing counts them."""
    return [part for part in get_args(Part) if all(item.item != part for item in prices.items)]
