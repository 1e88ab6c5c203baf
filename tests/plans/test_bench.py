"""`emu.plans.bench`: what a plan takes over of a fabric, and what it makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.plans.bench import Bench, bench_of
from emu.plans.case import Verdict
from emu.plans.plan import plan_named
from emu.plans.requirements import Requirements, requirements_of
from emu.plans.traffic import Stream, payload_of_frame
from emu.spec.from_code import spec_from_mapping


def _bench(
    required: Requirements | None = None, rate: str = "100Gbit", **switches: object
) -> Bench:
    data = {
        "name": "bench",
        "topology": {
            "kind": "leaf-spine",
            "spines": 1,
            "leaves": 2,
            "hosts_per_leaf": 2,
            "links": {"host": {"rate": rate}, "fabric": {"rate": rate}},
        },
        "switches": switches,
        "traffic": [{"name": "a", "pattern": "pair", "from": "h1", "to": "h2", "size": "1KB"}],
    }
    spec = spec_from_mapping(data, source="test", folder=Path())
    return bench_of(spec, required or Requirements(), "test")


def _verdict(bench: Bench, plan: str, case: str) -> tuple[str, str]:
    (found,) = (one for one in plan_named(plan).cases if one.id == case)
    result = found.run(bench)
    return result.verdict, result.measured


def test_testers_are_at_one_switch() -> None:
    """Hosts of other switches send where more senders are needed."""
    bench = _bench(preset="sonic")
    assert (bench.switch, bench.receiver, bench.senders) == ("leaf1", "h2", ["h1", "h3", "h4"])
    assert bench.port_of("h2") == "leaf1:h2"


def test_lossless_priorities_are_those_with_pfc() -> None:
    """3 comes first, and requirements replace the settings."""
    assert _bench(pfc={"priorities": [2, 3]}).lossless == (3, 2)
    assert _bench(Requirements(lossless=(5, 6)), pfc={"priorities": [3]}).lossless == (5, 6)


def test_required_priority_without_dscp_fails() -> None:
    """Nothing can be sent on it, which is not the same as nothing received."""
    classes = {"dscp": {26: 3}, "other_dscp": 0}
    bench = _bench(requirements_of(["lossless=4"]), classes=classes, pfc={"priorities": [3, 4]})
    verdict, measured = _verdict(bench, "sonic-lossless", "L01")
    assert verdict == Verdict.FAILED.value
    assert "no DSCP" in measured


@pytest.mark.parametrize("rate", ["10Gbit", "400Gbit", "800Gbit"])
def test_rates_are_kept_at_every_speed(rate: str) -> None:
    """Small frames, too, whose time is less than a nanosecond."""
    verdict, measured = _verdict(_bench(rate=rate, preset="sonic"), "sonic-lossless", "L06")
    assert verdict == Verdict.PASSED.value, measured


def test_lossy_cases_need_no_pfc() -> None:
    assert _verdict(_bench(), "sonic-lossy", "Y04")[0] == Verdict.PASSED.value


@pytest.mark.parametrize(("frame", "payload"), [(64, 4), (512, 448), (1518, 1456), (4158, 4096)])
def test_payload_of_a_frame(frame: int, payload: int) -> None:
    """A SEND has 62 bytes besides its payload, FCS included; payloads are multiples of 4."""
    assert payload_of_frame(frame) == payload


def test_stream_has_its_rate() -> None:
    """Messages of a burst, over the time from one burst to the next."""
    stream = Stream("a", "h1", "h2", 3, payload=4, rate_bps=12.5e9)
    entry = stream.entry(20_000, 100_000)
    every_ns = int(entry["every"].removesuffix("ns"))
    assert entry["burst"] * 86 * 8 / every_ns == pytest.approx(12.5, rel=0.001)
    assert entry["count"] == round(100_000 * 12.5 / (86 * 8))
