"""Automatic headroom: the bytes that still arrive after a pause, computed from the parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from emu.spec import topology as topology_section
from emu.spec.headroom import headroom_bytes, headroom_of, reserved_of, response_quanta
from emu.spec.model import Graph, Spec, spec_from_mapping, spec_from_text

TWO_SPEEDS = """
topology:
  kind: dumbbell
  hosts_per_side: 1
  links: {host: {rate: 100Gbit, delay: 500ns}, fabric: {rate: 400Gbit, length: 10m}}
switches: {pfc: on, nodes: {right: {pfc: off}}}
"""


def spec(text: str = TWO_SPEEDS) -> Spec:
    return spec_from_text(text.encode(), source="two.emu.yml")


def headroom(told: Spec, port: str) -> int:
    return headroom_of(told, told.topology.build().port_named[port])


def test_headroom_is_the_sum_of_its_parts() -> None:
    """Three frames, a pause frame, and 2 us at 100 Gbit/s (500 ns of cable
    each way, 1 us response)."""
    frame = 4096 + 74 + 24
    parts = headroom_bytes(
        rate_bps=100_000_000_000, delay_ps=500_000, response_ps=1_000_000, frame_bytes=frame
    )
    assert parts == 3 * frame + 84 + 25_000


@pytest.mark.parametrize(
    ("rate_bps", "quanta"),
    [(1, 2), (10**9, 2), (10**9 + 1, 67), (40 * 10**9, 118), (8 * 10**11, 905)],
)
def test_response_time_is_that_of_the_next_listed_rate(rate_bps: int, quanta: int) -> None:
    """802.3's table has steps. The last step also holds for higher rates."""
    assert response_quanta(rate_bps) == quanta


def test_headroom_depends_on_cable_and_neighbour() -> None:
    """802.3 gives 394 and 905 quanta of 64 bytes as response times.

    A configured one replaces them.
    """
    frames = 3 * (4096 + 74 + 24) + 84
    assert headroom(spec(), "left:h1") == frames + 12_500 + 394 * 64
    assert headroom(spec(), "left:right") == frames + 2 * 50 * 50 + 905 * 64
    assert headroom(spec(), "right:left") == 0  # PFC is off at right
    host_slow = spec(TWO_SPEEDS + "hosts: {nic: {pause_response: 3us}}\n")
    assert headroom(host_slow, "left:h1") == frames + 12_500 + 37_500
    assert headroom(host_slow, "left:right") == headroom(spec(), "left:right")
    neighbour = TWO_SPEEDS.replace("right: {pfc: off}", "right: {pfc: off, pause_response: 1us}")
    assert headroom(spec(neighbour), "left:right") == frames + 2 * 50 * 50 + 50_000


def test_the_largest_packet_of_any_host_counts() -> None:
    """A switch may receive packets of any host."""
    small = spec(TWO_SPEEDS + "hosts: {nic: {mtu: 1024}}\n")
    mixed = spec(TWO_SPEEDS + "hosts: {nic: {mtu: 1024}, nodes: {h2: {nic: {mtu: 4096}}}}\n")
    assert headroom(small, "left:h1") == headroom(spec(), "left:h1") - 3 * (4096 - 1024)
    assert headroom(mixed, "left:h1") == headroom(spec(), "left:h1")


def test_a_tag_is_part_of_the_longest_packet() -> None:
    """A tag adds four bytes to each of the three frames, unless tagged frames are shorter."""
    tagged = spec(TWO_SPEEDS + "hosts: {nic: {vlan: 0}}\n")
    assert headroom(tagged, "left:h1") == headroom(spec(), "left:h1") + 3 * 4
    mixed = spec(TWO_SPEEDS + "hosts: {nodes: {h1: {nic: {mtu: 1024, vlan: 0}}}}\n")
    assert headroom(mixed, "left:h1") == headroom(spec(), "left:h1")


def test_configured_headroom_is_used() -> None:
    """Even too small a headroom is used, because a spec may demonstrate the loss."""
    told = spec(TWO_SPEEDS.replace("pfc: on", "pfc: {headroom: 1KB}"))
    assert headroom(told, "left:right") == 1_000


def test_unshared_buffer_is_headroom_plus_reserved() -> None:
    """Two ports have one lossless priority and eight priorities with reserved bytes."""
    told = spec(TWO_SPEEDS.replace("pfc: on", "reserved: 2KB, pfc: {headroom: 50KB}"))
    assert reserved_of(told, "left") == 2 * 50_000 + 2 * 8 * 2_000
    assert reserved_of(told, "right") == 2 * 8 * 2_000


R = TypeVar("R")


def recording_calls(calls: list[Graph], function: Callable[[Graph], R]) -> Callable[[Graph], R]:
    """The function, which also appends its argument to `calls`."""

    def wrapper(own: Graph) -> R:
        calls.append(own)
        return function(own)

    return wrapper


def test_rules_build_a_topology_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules need the topology at every port.

    A look-up in the cache hashes every cable, so the test counts look-ups as well: one for each
    model that the text is validated into.
    """
    laid_out: list[Graph] = []
    looked_up: list[Graph] = []
    monkeypatch.setattr(Graph, "lay_out", recording_calls(laid_out, Graph.lay_out))
    monkeypatch.setattr(
        topology_section, "_built", recording_calls(looked_up, topology_section._built)
    )
    hosts = [f"h{number}" for number in range(1, 41)]
    links = [{"between": [host, f"s{place % 4}"]} for place, host in enumerate(hosts)]
    links += [{"between": [f"s{leaf}", f"up{spine}"]} for leaf in range(4) for spine in range(4)]
    graph = {
        "kind": "graph",
        "hosts": hosts,
        "switches": [*(f"s{n}" for n in range(4)), *(f"up{n}" for n in range(4))],
        "links": links,
    }
    switches = {"pfc": {"xoff": "alpha 1/8"}, "ecn": "on", "buffer": "32MB"}
    spec_from_mapping(
        {"name": "imported", "topology": graph, "switches": switches}, source="made", folder=Path()
    )
    assert len(laid_out) == 1
    assert len(looked_up) <= 3
