"""Candidates are the user's fabric with other mechanisms and rates, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import emu
from emu.decisions.candidates import Candidate, candidates_of, host_rate_bps, known_fabrics
from emu.decisions.names import IB, LOSSLESS, LOSSY, TUNED, USUAL
from emu.spec import scenario
from emu.spec.model import load_spec

GBIT = 10**9
SPECS = sorted(
    set(Path("topologies").glob("*.emu.yml")) - {Path("topologies/fat-tree-1024.emu.yml")}
)
"""Without the largest, which has nothing that the others have not."""
LEAF_SPINE = {"kind": "leaf-spine", "spines": 2, "leaves": 2, "hosts_per_leaf": 2}
CROSSING = {"name": "cross", "pattern": "pair", "from": "h1", "to": "h3", "size": "1MB"}


def spec(**keys: Any) -> emu.Spec:
    return emu.Spec(**{"topology": LEAF_SPINE, "traffic": [CROSSING], **keys})


def made(own: scenario.Spec, fabric: str, rate_bps: int | None = None) -> scenario.Spec:
    rates = [host_rate_bps(own) if rate_bps is None else rate_bps]
    (candidate,), refused = candidates_of(own, [fabric], rates)
    assert refused == []
    return candidate.spec


def nics(own: scenario.Spec) -> set[tuple[str, str]]:
    hosts = (own.host(name).nic for name in own.topology.build().host)
    return {(nic.cc, nic.recovery) for nic in hosts}


def is_lossless(own: scenario.Spec) -> bool:
    return all(own.port(port).pfc is not None for port in own.topology.build().switch_ports)


def marks(own: scenario.Spec) -> bool:
    return all(own.port(port).ecn is not None for port in own.topology.build().switch_ports)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_every_shipped_spec_has_all_candidates_at_two_rates(path: Path) -> None:
    own = load_spec(path)
    rate = host_rate_bps(own)
    candidates, refused = candidates_of(own, USUAL, [rate, 2 * rate])
    assert refused == []
    assert len(candidates) == 2 * len(USUAL)
    before = own.topology.build()
    for candidate in candidates:
        after = candidate.spec.topology.build()
        factor = candidate.rate_bps // rate
        assert [int(cable.rate_bps) for cable in after.cables] == [
            int(cable.rate_bps) * factor for cable in before.cables
        ]
        assert [cable.delay_ps for cable in after.cables] == [c.delay_ps for c in before.cables]
        assert candidate.spec.workload().size_bytes.tolist() == own.workload().size_bytes.tolist()


@pytest.mark.parametrize(
    "own",
    [
        spec(),
        spec(fabric="ib", switches={"fecn": {}}, hosts={"nic": {"cc": "cct"}}),
        spec(switches={"pfc": {"xoff": "90KB"}, "ecn": {"kmin": "9KB"}, "alpha": 2.0}),
        spec(switches={"roles": {"leaf": {"pfc": {"priorities": [3]}, "ecn": {"pmax": 0.9}}}}),
        spec(switches={"preset": "sonic", "buffer": "16MB"}),
        spec(hosts={"nic": {"cc": "swift", "ack_every": 1, "swift": {"ai": 2.0}}}),
    ],
    ids=["plain", "ib", "thresholds", "roles", "preset", "swift"],
)
def test_candidates_are_what_they_are_called(own: emu.Spec) -> None:
    infiniband, lossless, lossy = (made(own, name) for name in (IB, LOSSLESS, LOSSY))
    assert infiniband.fabric == "ib"
    assert {recovery for _, recovery in nics(infiniband)} == {"go-back-n"}
    assert lossless.fabric == lossy.fabric == "roce"
    assert is_lossless(lossless)
    assert marks(lossless)
    assert marks(lossy)
    assert {recovery for _, recovery in nics(lossless)} == {"go-back-n"}
    assert {recovery for _, recovery in nics(lossy)} == {"selective-repeat"}
    ports = lossy.topology.build().switch_ports
    assert all(lossy.port(port).pfc is None for port in ports)


def test_thresholds_of_the_spec_give_way_to_defaults() -> None:
    own = spec(
        switches={
            "pfc": {"priorities": [3, 4], "xoff": "90KB", "headroom": "50KB"},
            "ecn": {"kmin": "9KB", "kmax": "30KB"},
            "nodes": {"leaf1": {"ecn": {"kmin": "1KB"}, "alpha": 4.0}},
        },
        hosts={"nic": {"cc": "dcqcn", "dcqcn": {"rai": "1Gbit"}}},
    )
    plain = spec(
        switches={"pfc": {"priorities": [3, 4]}, "ecn": {}}, hosts={"nic": {"cc": "dcqcn"}}
    )
    lossless = made(own, LOSSLESS)
    for port in plain.topology.build().switch_ports:
        assert lossless.port(port) == plain.port(port)
    assert lossless.host("h1") == plain.host("h1")
    assert made(own, "spec").host("h1") == own.host("h1")


def test_ethernet_without_control_gets_that_of_nics() -> None:
    assert nics(made(spec(), LOSSLESS)) == {("dcqcn-nvidia", "go-back-n")}
    assert nics(made(spec(hosts={"nic": {"cc": "dcqcn"}}), LOSSY)) == {
        ("dcqcn", "selective-repeat")
    }
    assert nics(made(spec(hosts={"nic": {"cc": "dcqcn"}}), IB)) == {("none", "go-back-n")}


def test_rates_by_default_of_single_cables_and_of_graphs_are_scaled() -> None:
    cables = [{"cable": "leaf1:h1", "rate": "25Gbit"}, {"cable": "leaf1:h2", "length": "9m"}]
    own = spec(topology=LEAF_SPINE | {"cables": cables})
    rates = {int(c.rate_bps) for c in made(own, IB, 400 * GBIT).topology.build().cables}
    assert rates == {100 * GBIT, 400 * GBIT}
    links = [
        {"between": ["s", "h1"], "rate": "4x NDR"},
        {"between": ["s", "h3"]},
    ]
    graph = {"kind": "graph", "hosts": ["h1", "h3"], "switches": ["s"], "links": links}
    own = spec(topology=graph)
    rates = {int(c.rate_bps) for c in made(own, IB, 800 * GBIT).topology.build().cables}
    assert rates == {200 * GBIT, 800 * GBIT}


def test_checks_of_workloads_stay_and_those_of_one_fabric_go() -> None:
    checks = [
        {"completed": "all"},
        {"lossless": {"priority": 3}},
        {"finish": {"traffic": "cross", "by": "1ms"}},
    ]
    own = spec(switches={"pfc": {}}, verify=checks)
    assert [check.kind for check in made(own, IB).verify] == ["completed", "finish"]
    assert len(made(own, "spec").verify) == 3


def test_variants_are_candidates_too() -> None:
    own = spec(compare={"big": {"switches": {"buffer": "64MB"}}})
    candidates, _ = candidates_of(own, ["big", TUNED], [100 * GBIT])
    assert [(own.name, own.fabric) for own in candidates] == [("big", "big"), (TUNED, TUNED)]
    assert candidates[0].spec.switch("leaf1").buffer_bytes == 64_000_000
    both, _ = candidates_of(own, ["big"], [100 * GBIT, 200 * GBIT])
    assert [own.name for own in both] == ["big@100Gbit", "big@200Gbit"]


def test_a_variant_may_have_the_name_of_a_usual_fabric() -> None:
    own = spec(compare={IB: {"switches": {"buffer": "64MB"}}})
    assert known_fabrics(own)[-1] == "compare.ib"
    candidates, _ = candidates_of(own, [IB, "compare.ib"], [100 * GBIT])
    assert [each.spec.fabric for each in candidates] == ["ib", "roce"]
    assert candidates[1].spec.switch("leaf1").buffer_bytes == 64_000_000


def test_what_a_fabric_cannot_have_is_refused_with_the_reason() -> None:
    own = spec(switches={"pfc": {}}, faults=[{"pause-storm": {"host": "h1", "priority": 3}}])
    candidates, refused = candidates_of(own, [IB, LOSSLESS], [100 * GBIT])
    assert [own.name for own in candidates] == [LOSSLESS]
    assert "InfiniBand has no pause frames" in refused[0].reason
    assert isinstance(candidates[0], Candidate)
