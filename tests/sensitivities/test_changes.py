"""Changes of a spec: one key alone, at every place that has it; refused ones have a reason."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

import emu
from emu.sensitivities.change import Change, LeftOut
from emu.sensitivities.changes import Changes, changes_of
from emu.sensitivities.pinned import pinned
from emu.sensitivities.places import BusiestPlaces
from emu.sensitivities.settings import setting_changes, tuned_settings
from emu.spec import scenario
from emu.spec.congestion_control import CONTROLS
from emu.spec.from_code import with_values
from emu.spec.rerouting import reroutings
from emu.tuning.ranges import RULES

LEAF_SPINE = {
    "kind": "leaf-spine",
    "spines": 2,
    "leaves": 2,
    "hosts_per_leaf": 2,
    "links": {"host": {"rate": "100Gbit"}, "fabric": {"rate": "400Gbit"}},
}
CROSSING = {"name": "cross", "pattern": "pair", "from": "h1", "to": "h3", "size": "1MB"}


def spec(**keys: Any) -> scenario.Spec:
    own: dict[str, Any] = {
        "topology": LEAF_SPINE,
        "switches": {"pfc": {}, "ecn": {}},
        "hosts": {"nic": {"cc": "dcqcn"}},
        "traffic": [CROSSING],
    }
    return pinned(emu.Spec(**{**own, **keys}))


def changes(own: scenario.Spec) -> Changes:
    topology = own.topology.build()
    return changes_of(
        own,
        BusiestPlaces(
            port=topology.port_named["leaf2:h3"],
            cable=topology.port_named.get("leaf1:spine1"),
            spare="spine1",
            sender="h1",
            receiver="h3",
            half_ns=50_000,
        ),
    )


def named(own: scenario.Spec, name: str) -> Change:
    return next(change for change in changes(own).made if change.name == name)


def reason(own: scenario.Spec, name: str) -> str:
    return next(left.reason for left in changes(own).left_out if left.name == name)


def in_force(own: scenario.Spec) -> dict[tuple[str, str], Any]:
    """Every value of each port, host and the subnet: an oracle apart from what makes changes."""
    topology = own.topology.build()
    models: dict[str, BaseModel] = {
        topology.port_name[port]: own.port(port) for port in topology.switch_ports
    }
    models |= {name: own.host(name) for name in topology.host} | {"subnet": own.subnet}
    found: dict[tuple[str, str], Any] = {}

    def add(place: str, above: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                add(place, f"{above}.{key}", inner)
        else:
            found[place, above] = value

    for place, model in models.items():
        add(place, "", model.model_dump(mode="json", by_alias=True, exclude={"nodes", "ports"}))
    return found


@pytest.mark.parametrize(
    "own",
    [
        spec(),
        spec(switches={"pfc": {"xoff": "100KB"}, "ecn": {"queues": {3: {"kmin": "20KB"}}}}),
        spec(switches={"pfc": {}, "ecn": {}, "nodes": {"leaf1": {"ecn": {"kmin": "30KB"}}}}),
        spec(switches={"preset": "sonic", "buffer": "16MB"}),
        spec(fabric="ib", switches={"fecn": {}}, hosts={"nic": {"cc": "cct"}}),
    ],
    ids=["derived", "queues", "nodes", "preset", "ib"],
)
def test_a_change_of_a_setting_changes_one_key_alone(own: scenario.Spec) -> None:
    before = in_force(own)
    made = [change for change in setting_changes(own) if isinstance(change, Change)]
    for change in (own for own in changes(own).made if own in made):
        after = in_force(with_values(own, change.settings, source="test"))
        keys = {key for (_, key), value in after.items() if before[_, key] != value}
        assert len(keys) == 1, f"{change.name} changes {keys}"
        assert change.name.split()[0].endswith(keys.pop())


def test_a_derived_threshold_is_doubled_at_each_port() -> None:
    """Ports of 100 and 400 Gbit/s have different ones."""
    own = spec(switches={"buffer": "16MB", "pfc": {}, "ecn": {}})
    doubled = with_values(own, named(own, "switches.ecn.kmin x 2").settings, source="test")
    kmins = {}
    for port in own.topology.build().switch_ports:
        before, after = own.port(port).ecn, doubled.port(port).ecn
        assert before is not None
        assert after is not None
        assert after.kmin_bytes == 2 * before.kmin_bytes
        assert after.kmax_bytes == before.kmax_bytes
        kmins[own.topology.build().port_name[port]] = before.kmin_bytes
    assert kmins["leaf1:h1"] != kmins["leaf1:spine1"]


@pytest.mark.parametrize("name", [own for own, entry in CONTROLS.items() if entry.key])
def test_all_keys_that_are_tuned_of_a_control_are_changed(name: str) -> None:
    key = CONTROLS[name].key
    fabric = {"fabric": "ib", "switches": {"fecn": {}}} if name == "cct" else {}
    found = {own.key for own in tuned_settings(spec(hosts={"nic": {"cc": name}}, **fabric))}
    known = [rule.ending for rule in RULES if rule.ending.startswith(f"{key}.")]
    assert {f"hosts.nic.{ending}" for ending in known} <= found


def test_settings_without_effect_are_not_changed() -> None:
    roce = {own.key for own in tuned_settings(spec())}
    assert not [key for key in roce if "credits" in key or "subnet" in key]
    unmarked = {own.key for own in tuned_settings(spec(switches={"pfc": {}}))}
    assert not [key for key in unmarked if "ecn" in key or "dcqcn" in key]
    infiniband = {own.key for own in tuned_settings(spec(fabric="ib"))}
    assert infiniband == {
        "switches.credits.buffer",
        "hosts.nic.timeout",
        "subnet.head_of_queue_lifetime",
        "subnet.leaf_head_of_queue_lifetime",
    }


def test_xon_follows_xoff_unless_it_is_given() -> None:
    """Its offset is not changed where xoff is in bytes, and takes no part."""
    own = spec(switches={"pfc": {"xoff": "60KB"}})
    half = with_values(own, named(own, "switches.pfc.xoff x 1/2").settings, source="test")
    pfc = half.port(half.topology.build().switch_ports[0]).pfc
    assert pfc is not None
    assert (pfc.xoff.size_bytes, pfc.xon_bytes) == (30_000, 20_000)
    assert not [own.key for own in tuned_settings(own) if "xon" in own.key]
    given = spec(switches={"pfc": {"xoff": "60KB", "xon": "40KB"}})
    assert "xon (40KB) is above xoff (30KB)" in reason(given, "switches.pfc.xoff x 1/2")


def test_values_keep_their_kind() -> None:
    own = spec(hosts={"nic": {"cc": "dcqcn", "timeout": 12}})
    shown = {change.name: change.what for change in changes(own).made}
    assert shown["switches.pfc.xoff x 2"] == "alpha 1 -> alpha 2"
    assert shown["hosts.nic.timeout x 1/2"] == "12 -> 11"  # a power of 2
    assert shown["hosts.nic.dcqcn.rai x 2"] == "40 Mb/s -> 80 Mb/s"
    assert shown["hosts.nic.dcqcn.fast_recovery x 2"] == "5 -> 10"
    assert shown["hosts.nic.dcqcn.g x 1/2"] == "0.00390625 -> 0.00195312"


def test_changes_that_the_rules_refuse_are_left_out_with_the_reason() -> None:
    own = spec(
        switches={
            "buffer": "2MB",
            "pfc": {"xoff": "300KB"},
            "ecn": {"kmin": "60KB", "kmax": "100KB", "pmax": 0.6},
        }
    )
    assert "more than the buffer of 2MB" in reason(own, "switches.pfc.xoff x 2")
    assert "kmin (120KB) is above kmax (100KB)" in reason(own, "switches.ecn.kmin x 2")
    assert "kmin (60KB) is above kmax (50KB)" in reason(own, "switches.ecn.kmax x 1/2")
    assert "1.2" in reason(own, "switches.ecn.pmax x 2")


def test_half_of_a_whole_number_that_has_none_is_left_out() -> None:
    own = spec(hosts={"nic": {"cc": "dcqcn-nvidia"}})
    text = reason(own, "hosts.nic.roce_cc_ecn.rpg_threshold x 1/2")
    assert text == "it is 1, a whole number, and stays so"


def test_every_change_is_made_or_left_out() -> None:
    """On each fabric: two of each setting, the mistakes and the failures."""
    for own, mistakes, failures in ((spec(), 5, 4), (spec(fabric="ib"), 2, 5)):
        found = changes(own)
        count = len(found.made) + len(found.left_out)
        assert count == 2 * len(tuned_settings(own)) + mistakes + failures


def test_mistakes_are_where_the_traffic_is() -> None:
    made = {change.name: change for change in changes(spec()).made}
    assert made["wrong DSCP map"].what == "leaf2: DSCP 26 on priority 0 instead of 3"
    assert made["CNPs ignored"].what == "by h1"
    assert made["slow receiver"].what == "h3 takes 50Gbit"
    assert made["link down"].what == "leaf1:spine1 from the start"
    assert made["link fails"].what == "leaf1:spine1 at 50us, routes change 100us later"
    assert made["slow routes"].what == "leaf1:spine1 at 50us, routes change 1ms later"
    assert made["switch fails"].what == "spine1 at 50us, routes change 100us later"


def test_a_switch_without_ecn_marks_at_no_port() -> None:
    own = spec()
    without = with_values(own, named(own, "a switch without ECN").settings, source="test")
    topology = own.topology.build()
    marking = {port.node for port in topology.switch_ports if without.port(port).ecn}
    assert marking == {"leaf1", "spine1", "spine2"}


def test_faults_of_the_spec_stay() -> None:
    own = spec(faults=[{"delay": {"cable": "leaf1:h1", "by": "1us"}}])
    faults = named(own, "link down").settings["faults"]
    assert [next(key for key in fault if key not in ("at", "for")) for fault in faults] == [
        "delay",
        "link-down",
    ]


def test_a_wrong_sl_takes_the_lane_of_other_traffic() -> None:
    other = {"name": "other", "pattern": "pair", "from": "h2", "to": "h4", "size": "1KB"}
    own = spec(
        fabric="ib",
        switches={"credits": {"vls": 4}},
        traffic=[CROSSING, {**other, "priority": 2}],
    )
    change = named(own, "wrong SL")
    assert change.settings == {"traffic.cross.priority": 2}
    assert "all service levels are on lane 0" in reason(spec(fabric="ib"), "wrong SL")


def test_a_fabric_with_one_path_has_no_failed_link() -> None:
    own = spec(topology={"kind": "dumbbell", "hosts_per_side": 2})
    topology = own.topology.build()
    places = BusiestPlaces(topology.switch_ports[0], None, None, "h1", "h3", 1000)
    left = [each for each in changes_of(own, places).left_out if isinstance(each, LeftOut)]
    whys = {each.name: each.reason for each in left}
    assert whys["link down"].startswith("no cable between switches has traffic")
    assert "link fails" in whys
    assert whys["switch fails"].startswith("without any switch")


def test_without_a_subnet_manager_routes_stay() -> None:
    own = spec(fabric="ib")
    alone = named(own, "no subnet manager")
    assert alone.what == "leaf1:spine1 at 50us, and routes do not change"
    changed = with_values(own, alone.settings, source="test")
    at_ps = {rerouting.at_ps for rerouting in reroutings(changed)}
    assert min(at_ps) >= own.time_limit_ps
