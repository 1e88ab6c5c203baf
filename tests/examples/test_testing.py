"""`emu.testing`: what a test says of a fabric and of its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.errors import SpecError, UsageError
from emu.testing import Fabric, expect, pair

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
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


def test_other_traffic_leaves_checks_of_the_old_behind(tmp_path: Path) -> None:
    """A variant that never runs, and the spec's own checks, speak of flows that are gone."""
    incast = Fabric(TOPOLOGIES / "incast.emu.yml", clock="virtual", out=tmp_path)
    run = incast.run(traffic=[pair("h5", "h1", size="16KB")])
    expect(run).completed()
    assert [flow.src for flow in run.recording.flows] == ["h5"]


def test_checks_of_its_own_go_with_other_traffic(fabric: Fabric) -> None:
    """They are judged; and without other traffic the spec's stay."""
    check = {"goodput": {"flow": "other", "at_least": "99Gbit"}}
    run = fabric.run(traffic=[pair("h2", "h1", size="64KB", name="other")], verify=[check])
    assert [result.passed for result in run.facts.checks] == [False]
    assert [result.passed for result in fabric.run(seed=2).facts.checks] == [True]


def test_a_mistake_is_told_by_its_key_alone(fabric: Fabric) -> None:
    """No text was written that had lines or columns."""
    with pytest.raises(SpecError) as caught:
        fabric.run(traffic=[pair("h1", "h9", size="64KB")])
    (told,) = caught.value.findings
    assert told.startswith("changes to pair.emu.yml: traffic.0.to: there is no host 'h9'")
    with pytest.raises(SpecError) as caught:
        expect(fabric.run()).goodput(flow="flown", at_least="1Gbit")
    (told,) = caught.value.findings
    assert told.startswith("expect(run).goodput: verify.0.goodput.flow: there is no flow")


def test_a_value_that_no_spec_can_have_is_refused(fabric: Fabric) -> None:
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
def test_what_nobody_counts_is_not_nothing(
    fabric: Fabric, where: str, name: str, told: str
) -> None:
    """A name with a slip in it must not make a test pass."""
    with pytest.raises(KeyError, match=told):
        fabric.run().counter(where, name)


def test_what_nothing_used_counts_nothing(fabric: Fabric) -> None:
    """A priority without packets; on InfiniBand a lane without any."""
    assert fabric.run().counter("left:h1", "rx_prio5_pause") == 0
    assert fabric.run(fabric="ib").counter("left:h1", "PortXmitWait_VL7") == 0


def test_a_check_without_its_keys_names_is_refused(fabric: Fabric) -> None:
    """What was said without a key would not be checked."""
    with pytest.raises(UsageError, match="which key of it is that"):
        expect(fabric.run()).goodput("flow", at_least="99Gbit")
