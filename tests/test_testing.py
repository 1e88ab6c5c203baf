"""`emu.testing`: runs of a fabric and statements about them."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest

from emu.errors import SpecError, UsageError
from emu.testing import Fabric, binomial, eventually, expect, incast, pair, within

TOPOLOGIES = Path(__file__).parents[1] / "topologies"
SPEC = """
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 64KB}]
verify: [{goodput: {flow: flow, at_least: 1Gbit}}]
compare:
  slow: {verify: [{finish: {flow: flow, by: 1ms}}]}
"""


@pytest.fixture
def fabric(tmp_path: Path) -> Fabric:
    (tmp_path / "pair.emu.yml").write_text(SPEC)
    return Fabric(tmp_path / "pair.emu.yml", clock="virtual", out=tmp_path)


def test_other_traffic_drops_the_checks_of_the_spec(tmp_path: Path) -> None:
    """Checks of the spec and its variants refer to flows that no longer exist."""
    incast = Fabric(TOPOLOGIES / "incast.emu.yml", clock="virtual", out=tmp_path)
    run = incast.run(traffic=[pair("h5", "h1", size="16KB")])
    expect(run).completed()
    assert [flow.src for flow in run.recording.flows] == ["h5"]


def test_other_traffic_may_have_its_own_checks(fabric: Fabric) -> None:
    """Without other traffic the spec's checks stay."""
    check = {"goodput": {"flow": "other", "at_least": "99Gbit"}}
    run = fabric.run(traffic=[pair("h2", "h1", size="64KB", name="other")], verify=[check])
    assert [result.passed for result in run.facts.checks] == [False]
    assert [result.passed for result in fabric.run(seed=2).facts.checks] == [True]


def test_dotted_keys_change_a_spec_as_set_does(fabric: Fabric) -> None:
    """One key changes and its neighbours stay. List entries are named or numbered."""
    run = fabric.run(
        ecn={"kmin": "20KB"},
        **{"switches.ecn.kmax": "90KB", "pfc.xoff": "40KB", "pfc.xon": "30KB"},
        **{"traffic.flow.size": "32KB"},
    )
    switches = run.facts.spec.switches
    assert switches.ecn is not None
    assert switches.pfc is not None
    assert (switches.ecn.kmin_bytes, switches.ecn.kmax_bytes) == (20_000, 90_000)
    assert switches.pfc.xoff.size_bytes == 40_000
    assert [flow.bytes for flow in run.recording.flows] == [32_000]
    assert len(run.facts.checks) == 1, "the same traffic has the same checks"
    with pytest.raises(SpecError, match=r"traffic\.flown\.size: there is no entry 'flown'"):
        fabric.run(**{"traffic.flown.size": "32KB"})


def test_errors_name_the_key_without_a_line(fabric: Fabric) -> None:
    """The changes have no text with lines and columns."""
    with pytest.raises(SpecError) as caught:
        fabric.run(traffic=[pair("h1", "h9", size="64KB")])
    (told,) = caught.value.findings
    assert told.startswith("changes to pair.emu.yml: traffic.0.to: there is no host 'h9'")
    with pytest.raises(SpecError) as caught:
        expect(fabric.run()).goodput(flow="flown", at_least="1Gbit")
    (told,) = caught.value.findings
    assert told.startswith("expect(run).goodput: verify.0.goodput.flow: there is no flow")


def test_a_value_of_another_type_is_refused(fabric: Fabric) -> None:
    with pytest.raises(UsageError, match="is no value of a spec"):
        fabric.run(traffic={"h1", "h2"})


@pytest.mark.parametrize(
    ("where", "name", "told"),
    [
        ("total", "rx_prio3_puase", "total has no counter rx_prio3_puase; there is ce_marked, "),
        ("left:h1", "rx_prio3_puase", "did you mean rx_prio3_pause"),
        ("h1", "np_cnp_snt", "did you mean np_cnp_sent"),
        ("left:h2", "rx_prio3_pause", "there is no place left:h2; did you mean left:h1"),
    ],
)
def test_an_unknown_counter_is_an_error(fabric: Fabric, where: str, name: str, told: str) -> None:
    """A misspelt name must not make a test pass."""
    with pytest.raises(KeyError, match=told):
        fabric.run().counter(where, name)


def test_an_unused_counter_is_zero(fabric: Fabric) -> None:
    """A priority has no packets, and on InfiniBand a lane has none."""
    assert fabric.run().counter("left:h1", "rx_prio5_pause") == 0
    assert fabric.run(fabric="ib").counter("left:h1", "PortXmitWait_VL7") == 0


def test_positional_arguments_of_a_check_are_refused(fabric: Fabric) -> None:
    """They would otherwise be ignored."""
    with pytest.raises(UsageError, match="which key of it is that"):
        expect(fabric.run()).goodput("flow", at_least="99Gbit")


@pytest.mark.parametrize("to", ["h2", "left[0]", "all[-1]"])
def test_an_incasts_default_senders_are_all_others(tmp_path: Path, to: str) -> None:
    """They are hosts of the run's fabric, whatever the form of the receiver's name."""
    (tmp_path / "pair.emu.yml").write_text(SPEC)
    fabric = Fabric(tmp_path / "pair.emu.yml", clock="virtual", out=tmp_path)
    run = fabric.run(traffic=incast(to=to, size="4KB"), topology={"hosts_per_side": 3})
    receiver = {"h2": "h2", "left[0]": "h1", "all[-1]": "h6"}[to]
    assert {flow.dst for flow in run.flows} == {receiver}
    assert {flow.src for flow in run.flows} == {f"h{n}" for n in range(1, 7)} - {receiver}
    assert run.flows.completed == len(run.flows) == 5


def test_switch_keys_may_omit_the_section(fabric: Fabric) -> None:
    """They may be beside `switches`. Keys that other sections have as well need the section."""
    spec = fabric.run(buffer="3MB", ecn={"kmin": "50KB"}, switches={"latency": "1us"}).facts.spec
    assert spec.switches.buffer_bytes == 3_000_000
    assert spec.switches.latency_ps == 1_000_000
    assert spec.switches.ecn is not None
    assert spec.switches.ecn.kmin_bytes == 50_000
    with pytest.raises(SpecError, match="cc: unknown key"):
        fabric.run(cc="none")


def test_a_run_ends_after_its_duration(fabric: Fabric) -> None:
    """1 MB takes 80 us at 100 Gb/s and is unfinished after 40 us."""
    run = fabric.run(traffic=pair("h1", "h2", size="1MB"), duration="40us")
    assert run.flows.completed == 0
    assert run.recording.series.time_ns[-1] == 40_000


def test_events_are_in_order_of_time(fabric: Fabric) -> None:
    """Flows begin and end, and a pause of 20 us holds back a port for as
    long as the samples show."""
    storm = {"pause-storm": {"host": "h2", "priority": 3}, "at": "0ns", "for": "20us"}
    run = fabric.run(faults=storm, switches={"pfc": {"priorities": [3]}})
    names = [event.event for event in run.events]
    assert names[0] in ("flow-started", "fault-began")
    assert names[-1] == "flow-completed"
    assert names.index("fault-over") > names.index("fault-began")
    times = [event.time_ns for event in run.events]
    assert times == sorted(times)
    (held,) = (event for event in run.events if event.event == "paused")
    assert held.where == "right:h2"
    assert held.values["ns"] == run.recording.series.paused_ns.max()


def test_a_tolerance_prints_its_range() -> None:
    """Values at the edges are equal, and the larger tolerance counts."""
    assert within(100, rel=0.1) == 110
    assert within(100, rel=0.1, by=1) == 90.0
    assert within(100, rel=0.1, by=11) != 112
    assert repr(within(100, rel=0.1)) == "100 within 10 (90 to 110)"
    with pytest.raises(ValueError, match="allows"):
        within(100, rel=math.inf)


def _probability(least: int, most: int, trials: int, p: Fraction) -> Fraction:
    """The exact probability, summed over all cases."""
    return sum(
        (math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(least, most + 1)),
        Fraction(0),
    )


@pytest.mark.parametrize(("hits", "trials", "p"), [(0, 40, 0.125), (9, 40, 0.125), (300, 400, 0.5)])
def test_chance_equals_that_of_the_exact_test(hits: int, trials: int, p: float) -> None:
    low = _probability(0, hits, trials, Fraction(p))
    high = _probability(hits, trials, trials, Fraction(p))
    expected = min(1.0, 2 * float(min(low, high)))
    assert binomial(hits, trials, p).chance == pytest.approx(expected, rel=1e-9)


def test_unlikely_counts_are_false_with_a_reason() -> None:
    """20 % of 10,000 marked packets are 2,000 with a deviation of 40, so 2,300 are not chance."""
    assert binomial(2_040, 10_000, 0.2)
    assert not binomial(2_300, 10_000, 0.2)
    assert not binomial(1_700, 10_000, 0.2)
    assert binomial(0, 10, 0.0)
    assert not binomial(1, 10, 0.0)
    assert not binomial(9, 10, 1.0)
    assert repr(binomial(2_300, 10_000, 0.2)).startswith("unlikely: 2300 of 10000, where 2000")
    with pytest.raises(ValueError, match="no such case"):
        binomial(11, 10, 0.5)


def test_eventually_waits_for_the_condition(fabric: Fabric) -> None:
    """The time is emulated. 64 KB take more than 5 us."""
    with fabric.stepped() as clock:
        eventually(lambda: clock.finished, within="20us", clock=clock)
        assert 5_000 < clock.now_ns < 20_000, "64 KB at 100 Gb/s take 5.1 us"


def test_eventually_fails_with_the_last_value(fabric: Fabric) -> None:
    with fabric.stepped() as clock:
        with pytest.raises(AssertionError, match=r"not within 1us .* at last it was 0"):
            eventually(lambda: clock.port("left:h1").paused.count(True), within="1us", clock=clock)
        assert clock.now_ns == 1_000


def test_an_unknown_clock_is_refused(tmp_path: Path) -> None:
    """It must not be replaced by the virtual clock."""
    with pytest.raises(UsageError, match=r"there is no clock 'reel' \(did you mean 'real'\?\)"):
        Fabric(TOPOLOGIES / "pair.emu.yml", clock="reel", out=tmp_path)
