"""What a winner is compared with, and the loads of the judgement."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("optuna", reason="needs Optuna (emu[sweep])")

import emu
from emu.spec.presets import PRESETS
from emu.tuning.goals import Wish
from emu.tuning.held_out import entries_without_load, loads_of
from emu.tuning.request import TuneRequest, setup_of
from emu.tuning.rivals import rivals_of

KMIN, KMAX = "switches.ecn.kmin", "switches.ecn.kmax"


def spec_of(fabric: str = "roce", traffic: list[dict[str, Any]] | None = None) -> emu.Spec:
    return emu.Spec(
        fabric=fabric,
        topology={"kind": "leaf-spine", "spines": 1, "leaves": 2, "hosts_per_leaf": 2},
        switches={"pfc": {}, "ecn": {"kmin": "20KB", "kmax": "90KB"}, "buffer": "8MB"},
        hosts={"nic": {"cc": "dcqcn"}} if fabric == "roce" else {},
        traffic=traffic
        or [{"name": "one", "pattern": "pair", "from": "h1", "to": "h3", "size": "1MB"}],
    )


def port(spec: Any) -> Any:
    topology = spec.topology.build()
    return spec.port(topology.port_named["leaf1:h1"])


def test_the_spec_and_the_defaults_are_two_rivals_if_the_spec_gives_a_varied_key() -> None:
    names = [own.name for own in rivals_of(spec_of(), [KMIN])]
    assert names == ["spec", "defaults", *PRESETS]
    assert next(iter(rivals_of(spec_of(), ["hosts.nic.dcqcn.rai"]))).name == "defaults"


def test_defaults_leave_the_varied_keys_to_emu() -> None:
    found = {own.name: own.spec for own in rivals_of(spec_of(), [KMIN, KMAX])}
    assert port(found["spec"]).ecn.kmin_bytes == 20_000
    assert port(found["defaults"]).ecn.kmin_bytes == 400_000, "100 KB for each 25 Gbit/s"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_brings_its_curve_and_leaves_the_hardware(name: str) -> None:
    found = {own.name: own.spec for own in rivals_of(spec_of(), [KMIN])}
    own, preset = port(found[name]), PRESETS[name]
    assert preset.ecn is not None
    assert (own.ecn.kmin_bytes, own.ecn.kmax_bytes, own.ecn.pmax) == (
        preset.ecn.kmin_bytes,
        preset.ecn.kmax_bytes,
        preset.ecn.pmax,
    )
    assert own.buffer_bytes == 8_000_000
    assert own.classes == port(spec_of()).classes


def test_infiniband_has_no_presets() -> None:
    assert [own.name for own in rivals_of(spec_of("ib"), ["switches.credits.buffer"])] == [
        "defaults"
    ]


def setup(traffic: list[dict[str, Any]], **further: Any) -> Any:
    wishes = [Wish("last_completion", False, "minimise")]
    return setup_of(TuneRequest(spec_of(traffic=traffic), {KMIN: None}, wishes, **further))


WEB = {
    "name": "web",
    "pattern": "background",
    "among": "all",
    "sizes": "websearch",
    "rate": "10Gbit",
}
SUM = {"name": "sum", "pattern": "all-reduce", "among": "all", "size": "1MB"}
DRIVES = {"name": "drives", "pattern": "storage", "from": "h1", "to": "h3", "block": "4096B"}
STEP = {
    "name": "step",
    "pattern": "training-step",
    "among": "all",
    "layers": 2,
    "hidden": 64,
    "sequence": 64,
}


def test_a_load_changes_rates_sizes_and_blocks() -> None:
    own, less, more = loads_of(setup([WEB, SUM, DRIVES]))
    assert (own.factor, own.changes) == (1, {})
    assert less.changes == {
        "traffic.web.rate": "8Gbit",
        "traffic.sum.size": "800KB",
        "traffic.drives.block": "3KiB",
    }
    assert more.changes["traffic.web.rate"] == "12Gbit"


def test_a_workload_without_a_load_is_judged_under_its_own_alone() -> None:
    made = setup([STEP])
    assert [load.factor for load in loads_of(made)] == [1]
    assert [entry.name for entry in entries_without_load(made.spec)] == ["step"]


def test_held_out_seeds_follow_those_of_the_search() -> None:
    made = setup([SUM], seeds=3, held_out=5)
    assert made.seeds == [1, 2, 3]
    assert made.held_out_seeds == [4, 5, 6, 7, 8]
