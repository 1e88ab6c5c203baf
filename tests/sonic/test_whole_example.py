"""A whole configuration: a Mellanox SN2700 as a ToR, with a server and an uplink."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.runtime.virtual import VirtualRunner
from emu.sonic.mapping import Imported
from emu.spec.headroom import headroom_of
from emu.spec.model import Spec, spec_from_mapping
from emu.spec.thresholds import limit_of
from tests.support.sonic_configs import mellanox, whole_example
from tests.support.sonic_round_trips import imported, spec_of

POOL = 4580864
RESERVED = 19456


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    return imported(tmp_path_factory.mktemp("example"), {"leaf1": whole_example()})


@pytest.fixture(scope="module")
def spec(example: Imported) -> Spec:
    return spec_of(example.data)


def port(spec: Spec, name: str) -> object:
    return spec.topology.build().port_named[name]


def test_servers_are_hosts_and_leaf_routers_spines(spec: Spec) -> None:
    topology = spec.topology.build()
    assert list(topology.host) == ["h1"]
    assert {name: own.role for name, own in topology.switch.items()} == {
        "leaf1": "leaf",
        "spine1": "spine",
    }
    cables = {topology.port_name[one.a]: (one.rate_bps, one.delay_ps) for one in topology.cables}
    assert set(cables.values()) == {(100_000_000_000, 25_000), (100_000_000_000, 200_000)}
    assert spec.devices["h1"].name == "Servers0"
    assert spec.devices["spine1"].name == "ARISTA01T1"
    assert spec.devices["leaf1"].ports == {"h1": "Ethernet0", "spine1": "Ethernet4"}


def test_dscps_have_the_priorities_of_their_classes(spec: Spec) -> None:
    classes = spec.switch("leaf1").classes
    listed = {3: 3, 4: 4, 5: 2, 8: 0, 46: 5, 48: 6}
    assert [classes.priority_of_dscp(d) for d in range(64)] == [listed.get(d, 1) for d in range(64)]
    assert [classes.queue_of(tc) for tc in range(8)] == list(range(8))


def test_lossless_groups_give_pfc_and_headroom(spec: Spec) -> None:
    """PG 3-4: 30720 bytes at the cable of 5 m and 38912 at that of 40 m, alpha 2^0."""
    topology = spec.topology.build()
    for name, headroom in (("leaf1:h1", 30720), ("leaf1:spine1", 38912)):
        own = topology.port_named[name]
        pfc = spec.port(own).pfc
        assert pfc is not None
        assert (pfc.priorities, pfc.xoff.alpha, pfc.xon_offset) == ((3, 4), 1.0, 0)
        assert headroom_of(spec, own) == headroom


def test_the_profile_s_size_is_reserved_and_headroom(spec: Spec) -> None:
    assert spec.switch("leaf1").reserved_bytes == RESERVED
    assert 30720 + RESERVED == 50176
    assert 38912 + RESERVED == 58368


def test_the_shared_pool_is_the_ingress_lossless_pool(spec: Spec) -> None:
    assert spec.shared_pool("leaf1") == POOL


def test_wred_marks_on_lossless_queues_alone(spec: Spec) -> None:
    topology = spec.topology.build()
    ecn = spec.port(topology.port_named["leaf1:h1"]).ecn
    assert ecn is not None
    for queue in range(8):
        curve = ecn.curve(queue)
        assert (curve is not None) == (queue in (3, 4))
        if curve is not None:
            assert (curve.kmin_bytes, curve.kmax_bytes, curve.pmax) == (1048576, 2097152, 0.05)


def test_schedulers_give_weights(spec: Spec) -> None:
    scheduling = spec.switch("leaf1").scheduling
    assert scheduling.strict == ()
    assert scheduling.weights == {0: 14, 1: 14, 2: 14, 3: 15, 4: 15, 5: 14, 6: 14}


def test_the_watchdog_has_the_fabric_s_time(spec: Spec) -> None:
    watchdog = spec.switch("leaf1").watchdog
    assert watchdog is not None
    ms = 10**9
    assert (watchdog.detection_ps, watchdog.restoration_ps, watchdog.poll_ps) == (200 * ms,) * 3
    assert watchdog.action == "drop"


def test_rdma_packets_have_a_lossless_dscp(spec: Spec) -> None:
    """26, the NICs' default, is lossy on such a switch."""
    assert spec.host("h1").nic.dscp == 3
    assert spec.priority("h1", None) == 3


# --- arithmetic ---


def test_a_lossless_port_alone_pauses_at_half_of_the_pool(spec: Spec) -> None:
    """alpha P / (1 + k alpha) for k = 1."""
    settings = spec.given_port(spec.topology.build().port_named["leaf1:h1"])
    assert limit_of(settings, POOL, lossless=True).size_bytes == 2290432


def test_a_lossy_queue_alone_gets_eight_ninths_of_the_pool(spec: Spec) -> None:
    settings = spec.given_port(spec.topology.build().port_named["leaf1:h1"])
    assert settings.alpha == 8.0
    assert limit_of(settings, POOL, lossless=False).size_bytes == 4071879


@pytest.mark.parametrize(("senders", "pause_point"), [(2, 1526954), (4, 916172)])
def test_equally_loaded_groups_pause_at_their_share(
    senders: int, pause_point: int, tmp_path: Path
) -> None:
    """k ports that fill the pool together each pause at alpha P / (1 + k alpha). An incast without
    congestion control fills them, so the deepest queue shows the sum."""
    servers = {
        f"Ethernet{4 * own}": (f"Servers{own}", "eth0", "Server", 5) for own in range(senders + 1)
    }
    data = imported(tmp_path / "tor", {"leaf1": mellanox("ToRRouter", servers)}).data
    data["hosts"]["nic"]["cc"] = "none"
    data["traffic"] = [
        {"name": "incast", "pattern": "incast", "from": "all[1:]", "to": "h1", "size": "4MB"}
    ]
    spec = spec_from_mapping({"name": "incast", **data}, source="test", folder=tmp_path)
    recording = VirtualRunner(None).run(spec, out=tmp_path)
    deepest = recording.ports["leaf1:h1"]["queue_peak_bytes"]
    packet = 4200
    assert deepest >= senders * (pause_point + RESERVED - packet)
    assert deepest <= senders * (pause_point + RESERVED + 30720 + packet)
    assert all(flow.completed for flow in recording.flows)


def test_a_sender_resumes_below_its_limit_or_at_the_reserved_bytes(example: Imported) -> None:
    """usage <= max(xon, limit - xon_offset): xon is the reserved part, and there is no offset."""
    outcomes = {line.row.path: line for line in example.report.lines}
    line = outcomes["BUFFER_PROFILE|pg_lossless_100000_5m_profile|xon"]
    assert line.outcome.value == "taken"
