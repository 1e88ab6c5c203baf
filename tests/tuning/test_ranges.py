"""Sensible ranges: their four lengths by hand, and keys and defaults that fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna", reason="needs Optuna (emu[sweep])")

import emu
from emu.errors import UsageError
from emu.explain import keys
from emu.sweeps.units import key_column
from emu.sweeps.values import Span, values_of
from emu.tuning.ranges import RULES, Lengths, lengths_of, range_of
from emu.tuning.starts import _own_values

FULL = {
    "kmin": "switches.ecn.kmin",
    "kmax": "switches.ecn.kmax",
    "pmax": "switches.ecn.pmax",
    "switches.alpha": "switches.alpha",
    "credits.buffer": "switches.credits.buffer",
}


def test_a_key_that_is_misspelt_has_a_hint() -> None:
    with pytest.raises(UsageError, match=r"no sensible range is known \(did you mean 'kmin'\?\)"):
        range_of("switches.ecn.kmni", lengths_of(spec_of()), "--vary")


def spec_of(rate: str = "100Gbit", delay: str = "500ns", buffer: str = "4MB") -> emu.Spec:
    links = {"rate": rate, "delay": delay}
    return emu.Spec(
        topology={
            "kind": "leaf-spine",
            "spines": 1,
            "leaves": 2,
            "hosts_per_leaf": 2,
            "links": {"host": links, "fabric": links},
        },
        switches={"pfc": {"xoff": "600KB"}, "ecn": "on", "buffer": buffer, "latency": "600ns"},
        hosts={"nic": {"mtu": 4096, "cc": "dcqcn"}},
        traffic=[{"name": "one", "pattern": "pair", "from": "h1", "to": "h3", "size": "1MB"}],
    )


def test_the_lengths_follow_from_cables_and_latencies() -> None:
    """Four cables of 500 ns and three switches of 600 ns, there and back; packet and ACK are sent
    four times each."""
    found = lengths_of(spec_of())
    assert found.rate_bps == 100 * 10**9
    assert found.limit_bytes == 600_000
    flight_ps = 2 * (4 * 500_000 + 3 * 600_000)
    sending_ps = 4 * 8 * (found.frame_bytes - 24 + 24 + 86) * 10
    assert found.rtt_ps == pytest.approx(flight_ps + sending_ps, rel=0.01)
    assert found.bdp_bytes == found.rtt_ps * 100 // 8 // 1000


def test_thresholds_end_where_the_port_pauses() -> None:
    lengths = lengths_of(spec_of())
    assert range_of("switches.ecn.kmin", lengths, "--vary").values == "8400B..300KB"
    assert range_of("switches.roles.leaf.ecn.kmax", lengths, "--vary").values == "17KB..600KB"


def test_rates_and_timers_grow_with_the_fabric() -> None:
    slow, fast = lengths_of(spec_of()), lengths_of(spec_of("400Gbit", "100us", "64MB"))
    rai = [range_of("hosts.nic.dcqcn.rai", own, "--vary").values for own in (slow, fast)]
    assert rai == ["5Mbit..1Gbit", "20Mbit..4Gbit"]
    timer = [
        range_of("hosts.nic.dcqcn.increase_timer", own, "--vary").values for own in (slow, fast)
    ]
    assert timer[0].endswith("..300us")
    assert timer[1] == "800us..16ms"


def full(ending: str) -> str:
    return FULL.get(ending, f"hosts.nic.{ending}")


@pytest.mark.parametrize("ending", [rule.ending for rule in RULES])
def test_each_range_is_one_of_a_key_that_exists(ending: str) -> None:
    key = full(ending)
    assert keys.matching(tuple(key.split("."))), key
    chosen = range_of(key, lengths_of(spec_of()), "--vary")
    span = values_of(chosen.values, "--vary")
    assert isinstance(span, Span)
    assert chosen.why


@pytest.mark.parametrize(
    "ending", [rule.ending for rule in RULES if rule.ending.startswith(("dcqcn", "roce", "dctcp"))]
)
def test_the_default_is_in_the_range(ending: str) -> None:
    """So that a search can keep it."""
    key, spec = full(ending), spec_of()
    span: Any = values_of(range_of(key, lengths_of(spec), "--vary").values, "--vary")
    column = key_column(key, [span.write(span.low), span.write(span.high)])
    low, high = column.cell(span.write(span.low)), column.cell(span.write(span.high))
    assert low <= column.cell(_own_values(spec)[key]) <= high


def test_pause_thresholds_are_powers_of_two() -> None:
    chosen = range_of("switches.pfc.xoff", lengths_of(spec_of()), "--vary")
    values = values_of(chosen.values, "--vary")
    assert not isinstance(values, Span)
    assert "alpha 1/8" in values


def test_a_key_without_a_range_says_how_to_give_one() -> None:
    with pytest.raises(UsageError, match=r"--vary hosts\.nic\.mtu=LOW\.\.HIGH"):
        range_of("hosts.nic.mtu", lengths_of(spec_of()), "--vary")


def test_a_formula_without_room_is_an_error() -> None:
    tiny = Lengths(rate_bps=10**9, rtt_ps=10**6, limit_bytes=8_000, frame_bytes=4_200)
    with pytest.raises(UsageError, match="gives no range in this fabric"):
        range_of("switches.ecn.kmin", tiny, "--vary")


def test_the_guide_has_every_range() -> None:
    page = (Path(__file__).parents[2] / "docs/guide/tuning.md").read_text()
    rows = [f"| `{rule.ending}` | {rule.formula} | {rule.why} |" for rule in RULES]
    assert [row for row in rows if row not in page] == []
