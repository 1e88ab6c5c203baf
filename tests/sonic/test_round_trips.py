"""Imports and exports undo each other: the same spec, and the same rows wherever one was taken."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.imports.report import Outcome
from emu.sonic.mapping import import_folder
from emu.sonic.writing import export
from emu.spec.headroom import headroom_of
from emu.spec.model import Spec, load_spec
from tests.support.sonic_configs import contrast, two_tiers, whole_example
from tests.support.sonic_round_trips import (
    config_of,
    differing_rows,
    exported,
    imported,
    spec_of,
)

FABRICS = {
    "whole": {"leaf1": whole_example()},
    "tiers": two_tiers(),
    "contrast": {"tor": contrast()},
}
SPECS = ("incast", "pair", "permutation", "all-reduce")


@pytest.mark.parametrize("name", FABRICS)
def test_an_exported_import_gives_an_equal_spec(name: str, tmp_path: Path) -> None:
    first = imported(tmp_path / "first", FABRICS[name])
    second = import_folder(exported(first.spec, tmp_path / "second"))
    assert second.data == first.data
    assert spec_of(second.data).to_mapping() == spec_of(first.data).to_mapping()


@pytest.mark.parametrize("name", FABRICS)
def test_an_export_has_every_row_that_was_taken(name: str, tmp_path: Path) -> None:
    result = imported(tmp_path / "first", FABRICS[name])
    assert differing_rows(result, exported(result.spec, tmp_path / "second")) == []
    taken = [line for line in result.report.lines if line.outcome is Outcome.TAKEN]
    assert len(taken) > 100


def test_own_names_of_rows_return(tmp_path: Path) -> None:
    """Maps, profiles, pools, curves and schedulers may be called as one likes."""
    config = _renamed(
        whole_example(),
        {
            "AZURE_LOSSLESS": "rdma",
            "scheduler.0": "bulk",
            "scheduler.1": "scheduler.0",
            "pg_lossless_100000_5m_profile": "short",
            "ingress_lossless_pool": "main",
            "q_lossy_profile": "rest",
        },
    )
    result = imported(tmp_path / "first", {"leaf1": config})
    folder = exported(result.spec, tmp_path / "second")
    assert differing_rows(result, folder) == []
    for table, name in (("WRED_PROFILE", "rdma"), ("SCHEDULER", "bulk"), ("BUFFER_POOL", "main")):
        assert config_of(folder, "leaf1/config_db.json").at(table, name) is not None
    assert import_folder(folder).data == result.data


def test_a_name_that_an_export_would_give_to_another_row_returns(tmp_path: Path) -> None:
    """The scheduler of queue 0, which an export calls scheduler.0, is scheduler.1 here, and the
    next one has no name."""
    config: dict[str, Any] = deepcopy(whole_example())
    config["SCHEDULER"] = {"scheduler.1": {"type": "DWRR", "weight": "14"}}
    for key, row in config["QUEUE"].items():
        del row["scheduler"]
        if not key.endswith("3-4"):
            row["scheduler"] = "scheduler.1"
    result = imported(tmp_path / "first", {"leaf1": config})
    folder = exported(result.spec, tmp_path / "second")
    back = config_of(folder, "leaf1/config_db.json")
    row = back.at("SCHEDULER", "scheduler.1")
    assert row is not None
    assert row.get("weight") == 14
    assert len(back.table("SCHEDULER")) == 2
    assert differing_rows(result, folder) == []
    assert import_folder(folder).data == result.data


def _renamed(config: Any, names: dict[str, str]) -> Any:
    if isinstance(config, dict):
        return {names.get(key, key): _renamed(value, names) for key, value in config.items()}
    return names.get(config, config)


# --- any maps, curves and thresholds ---

numbers = st.integers(0, 7)


@st.composite
def any_tor(draw: st.DrawFn) -> dict[str, Any]:
    """The whole example with other values."""
    config: dict[str, Any] = deepcopy(whole_example())
    dscps = draw(st.dictionaries(st.integers(0, 63), numbers, max_size=20))
    config["DSCP_TO_TC_MAP"]["AZURE"] = {str(d): str(tc) for d, tc in dscps.items()}
    lossless = draw(st.sets(numbers, min_size=1, max_size=3))
    queues = draw(st.permutations(range(8)))
    config["TC_TO_QUEUE_MAP"]["AZURE"] = {str(tc): str(q) for tc, q in enumerate(queues)}
    config["MAP_PFC_PRIORITY_TO_QUEUE"] = deepcopy(config["TC_TO_QUEUE_MAP"])
    same = {str(tc): str(tc) for tc in sorted(lossless)}
    config["PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"]["AZURE"] = same
    groups = {str(tc): str(tc if tc in lossless else 0) for tc in range(8)}
    config["TC_TO_PRIORITY_GROUP_MAP"]["AZURE"] = groups
    for port, profile in (("Ethernet0", "5m"), ("Ethernet4", "40m")):
        config["PORT_QOS_MAP"][port]["pfc_enable"] = ",".join(map(str, sorted(lossless)))
        name = f"pg_lossless_100000_{profile}_profile"
        config["BUFFER_PG"] |= {f"{port}|{tc}": {"profile": name} for tc in lossless}
    config["BUFFER_PG"] = {
        key: row
        for key, row in config["BUFFER_PG"].items()
        if not key.endswith(("|3-4", ",Ethernet4|0"))
    }
    for profile in ("5m", "40m"):
        own = config["BUFFER_PROFILE"][f"pg_lossless_100000_{profile}_profile"]
        own["dynamic_th"] = str(draw(st.integers(-6, 7)))
        own["xon_offset"] = str(draw(st.integers(0, 20000)))
    config["SCHEDULER"]["scheduler.0"] = draw(
        st.sampled_from(
            [{"type": "STRICT"}, {"type": "DWRR", "weight": "1"}, {"type": "DWRR", "weight": "70"}]
        )
    )
    low, high = sorted(draw(st.tuples(st.integers(0, 4000000), st.integers(0, 4000000))))
    config["WRED_PROFILE"]["AZURE_LOSSLESS"] |= {
        "green_min_threshold": str(low),
        "green_max_threshold": str(high),
        "green_drop_probability": str(draw(st.integers(0, 100))),
    }
    return config


@given(any_tor())
@settings(max_examples=40, deadline=None)
def test_any_values_round_trip(config: dict[str, Any]) -> None:
    with TemporaryDirectory(prefix="emu-test-") as folder:
        first = imported(Path(folder, "first"), {"leaf1": config})
        back = exported(first.spec, Path(folder, "second"))
        assert differing_rows(first, back) == []
        assert import_folder(back).data == first.data


# --- specs that were not imported ---


def effective(spec: Spec) -> Iterator[tuple[object, ...]]:
    """All that SONiC's tables say of the ports of a spec."""
    topology = spec.topology.build()
    for port in topology.switch_ports:
        own, switch = spec.port(port), spec.switch(port.node)
        pfc, ecn, classes = own.pfc, own.ecn, own.classes
        queues = [classes.queue_of(tc) for tc in range(8)]
        curves = [ecn.curve(queue) if ecn else None for queue in queues]
        heaviest = max(switch.scheduling.weights.values(), default=1)
        yield (
            topology.cable[port].rate_bps,
            [classes.priority_of_dscp(dscp) for dscp in range(64)],
            queues,
            pfc and (set(pfc.priorities), pfc.xoff, pfc.xon_below_xoff, headroom_of(spec, port)),
            [one and (one.kmin_bytes, one.kmax_bytes, one.pmax) for one in curves],
            spec.shared_pool(port.node),
            (switch.reserved_bytes, switch.queue_limit_bytes or switch.alpha),
            [q for q in switch.scheduling.strict if q in queues],
            [switch.scheduling.weights.get(q, 1) / heaviest for q in queues],
            switch.watchdog,
        )


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_keeps_its_settings(name: str, tmp_path: Path) -> None:
    """Thresholds that the emulator derives are written as numbers, and come back as such."""
    spec = load_spec(Path("topologies") / f"{name}.emu.yml")
    back = import_folder(exported(spec, tmp_path)).spec
    assert len(back.topology.build().hosts) == len(spec.topology.build().hosts)
    assert sorted(map(str, effective(back))) == sorted(map(str, effective(spec)))


def test_static_thresholds_and_limits_round_trip(tmp_path: Path) -> None:
    keys = [
        "switches.pfc={priorities: [3], xoff: 96KB, xon: 64KB, headroom: 50KB}",
        "switches.queue_limit=300KB",
        "switches.buffer=8MB",
    ]
    spec = load_spec(Path("topologies/pair.emu.yml"), keys)
    back = import_folder(exported(spec, tmp_path)).spec
    assert sorted(map(str, effective(back))) == sorted(map(str, effective(spec)))


def test_trust_in_pcp_round_trips(tmp_path: Path) -> None:
    keys = [
        "switches.classes={trust: pcp, pcp: {5: 3}}",
        "switches.pfc={priorities: [3], headroom: 50KB}",
        "hosts.nic.vlan=0",
    ]
    spec = load_spec(Path("topologies/pair.emu.yml"), keys)
    back = import_folder(exported(spec, tmp_path)).spec
    classes = back.switch("leaf1" if "leaf1" in back.topology.build().switch else "sw1").classes
    assert classes.trust == "pcp"
    assert [classes.priority_of_pcp(pcp) for pcp in range(8)] == [0, 1, 2, 3, 4, 3, 6, 7]
    assert back.host("h1").nic.vlan == 0


def test_an_export_says_what_it_rounds_and_leaves_out() -> None:
    keys = [
        "switches.alpha=3.0",
        "switches.latency=1us",
        "switches.ecn={kmin: 10KB, kmax: 20KB, pmax: 0.123}",
    ]
    spec = load_spec(Path("topologies/pair.emu.yml"), keys)
    notes = next(iter(export(spec).values())).notes
    assert any("alpha 3 is written as 4" in note for note in notes)
    assert any("12.3 % is written as 12 %" in note for note in notes)
    assert any(note.startswith("switches.latency: not written") for note in notes)
