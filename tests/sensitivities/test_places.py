"""The busiest places of a fabric: by the counters of its runs, and by its workload."""

from __future__ import annotations

import emu
from emu.sensitivities.places import places_of

TOPOLOGY = {"kind": "leaf-spine", "spines": 2, "leaves": 2, "hosts_per_leaf": 2}


def spec(*traffic: dict[str, str], **topology: object) -> emu.Spec:
    return emu.Spec(topology=TOPOLOGY | topology, traffic=list(traffic))


def pair(src: str, dst: str, size: str, op: str = "write") -> dict[str, str]:
    name = f"{src}-{dst}"
    return {"name": name, "pattern": "pair", "from": src, "to": dst, "size": size, "op": op}


def sent(own: emu.Spec, **bytes_of: int) -> dict[str, int]:
    """Port -> bytes; `leaf1__h1` stands for leaf1:h1."""
    ports = dict.fromkeys(own.topology.build().port_named, 0)
    return ports | {name.replace("__", ":"): count for name, count in bytes_of.items()}


def test_the_switch_is_that_of_the_port_with_most_bytes() -> None:
    own = spec(pair("h1", "h3", "1MB"))
    counters = sent(own, leaf1__spine1=7, leaf2__h3=9, spine2__leaf2=8, h1__leaf1=99)
    places = places_of(own, counters, [100, 80])
    assert places.switch == "leaf2"
    assert places.half_ns == 40


def test_the_cable_is_the_busiest_between_switches_in_both_directions() -> None:
    own = spec(pair("h1", "h3", "1MB"))
    counters = sent(own, leaf1__spine1=6, leaf1__spine2=4, spine2__leaf1=4, leaf2__h3=90)
    cable = places_of(own, counters, [100]).cable
    assert cable is not None
    assert own.topology.build().port_name[cable] == "leaf1:spine2"


def test_a_cable_that_is_the_only_path_is_not_taken() -> None:
    own = spec(pair("h1", "h3", "1MB"), spines=1)
    assert places_of(own, sent(own, leaf1__spine1=6), [100]).cable is None


def test_a_cable_without_traffic_is_not_taken() -> None:
    own = spec(pair("h1", "h2", "1MB"))
    assert places_of(own, sent(own, leaf1__h2=6), [100]).cable is None


def test_a_spare_switch_is_the_busiest_that_no_flow_needs() -> None:
    own = spec(pair("h1", "h3", "1MB"))
    counters = sent(own, leaf1__spine2=9, spine1__leaf2=3, spine2__leaf2=2, spine1__leaf1=1)
    assert places_of(own, counters, [100]).spare == "spine1"
    alone = spec(pair("h1", "h3", "1MB"), spines=1)
    assert places_of(alone, sent(alone, spine1__leaf2=3), [100]).spare is None
    idle = spec(pair("h1", "h2", "1MB"))
    assert places_of(idle, sent(idle, leaf1__h2=3), [100]).spare is None


def test_senders_of_reads_are_the_hosts_with_the_data() -> None:
    own = spec(pair("h1", "h3", "1MB"), pair("h2", "h4", "3MB", op="read"))
    places = places_of(own, sent(own), [100])
    assert (places.sender, places.receiver) == ("h4", "h2")


def test_there_is_no_half_of_a_time_that_does_not_end() -> None:
    own = spec(pair("h1", "h3", "1MB"))
    assert places_of(own, sent(own), [100, None]).half_ns is None
