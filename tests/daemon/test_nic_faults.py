"""Faults of NICs in an interactive lab: the faults that each NIC process gets, and their status."""

from __future__ import annotations

import pytest

from emu.daemon.lab_faults import check_settings
from emu.daemon.nic_faults import NicFaults
from emu.errors import UsageError
from emu.lab.ipc.codec import Json
from emu.lab.ipc.queries import FaultStatus
from emu.spec.fault import Fault
from emu.spec.load import spec_from_text

US = 1_000_000
"""Picoseconds."""
SPEC = """
topology: {kind: dumbbell, hosts_per_side: 2}
switches: {pfc: {priorities: [3]}}
faults:
  - {at: 20us, for: 5us, pause-storm: {host: h1, priority: 3}}
  - {loss: {cable: "left:right", every: 2}}
"""
ANEW = {"name": "pause-storm-1", "at": "20us", "for": "5us"}
"""Name and times of the spec's fault in each workload."""


def spec_faults(text: str = SPEC) -> NicFaults:
    return NicFaults(spec_from_text(text.encode(), source="test"))


def slow(host: str, **times: str) -> Fault:
    return Fault.model_validate({"slow-receiver": {"host": host, "rate": "1Gbit"}, **times})


def times(told: list[Json]) -> list[Json]:
    return [{key: fault[key] for key in ("name", "at", "for") if key in fault} for fault in told]


def states(faults: NicFaults, now_us: int) -> dict[str, str]:
    return {fault.name: fault.state for fault in faults.status(now_us * US, [])}


def test_faults_of_the_spec_begin_with_every_workload() -> None:
    """They do not begin with idle NICs. Faults of cables are not faults of NICs."""
    faults = spec_faults()
    assert states(faults, 0) == {"pause-storm-1": "waiting"}
    for epoch_us in (100, 500):
        assert times(faults.begin(epoch_us * US, with_traffic=True)) == [ANEW]
        assert faults.comes_again("pause-storm-1")
        at = [states(faults, epoch_us + us)["pause-storm-1"] for us in (19, 20, 24, 25)]
        assert at == ["waiting", "active", "active", "over"]
        faults.end([])
        assert faults.begin((epoch_us + 200) * US, with_traffic=False) == []
        assert states(faults, epoch_us + 300) == {"pause-storm-1": "waiting"}


def test_a_cleared_fault_does_not_return() -> None:
    faults = spec_faults()
    faults.begin(0, with_traffic=True)
    faults.clear("pause-storm-1")
    faults.end([])
    assert faults.begin(500 * US, with_traffic=True) == []
    assert faults.status(600 * US, []) == []


def test_a_waiting_fault_lasts_its_full_time() -> None:
    """The next NICs get the rest of the time, and no fault once the time is over."""
    faults = spec_faults("topology: {kind: dumbbell, hosts_per_side: 2}")
    faults.set("slow", slow("h1", **{"for": "100us"}), None)
    assert states(faults, 50) == {"slow": "waiting"}
    assert not faults.comes_again("slow")
    (told,) = faults.begin(70 * US, with_traffic=False)
    assert times([told]) == [{"name": "slow", "at": "0s", "for": "100us"}]
    assert Fault.model_validate(told).what == slow("h1").what
    faults.end([])
    (left,) = faults.begin(90 * US, with_traffic=True)
    assert times([left]) == [{"name": "slow", "at": "0s", "for": "80us"}]
    assert [states(faults, us)["slow"] for us in (169, 170)] == ["active", "over"]
    faults.end([])
    assert faults.begin(200 * US, with_traffic=True) == []


def test_a_faults_counts_outlive_its_nics() -> None:
    faults = spec_faults("topology: {kind: dumbbell, hosts_per_side: 2}")
    faults.set("slow", slow("h1"), 30 * US)
    seen = [FaultStatus("slow", "slow-receiver", "h1", 30_000, None, 7, 5, 0, "active")]
    faults.end(seen)
    faults.begin(50 * US, with_traffic=True)
    (status,) = faults.status(60 * US, seen)
    assert (status.packets_seen, status.hits, status.packets_dropped) == (14, 10, 0)
    assert (status.at_ns, status.end_ns) == (30_000, None), "when it was set"


def lasting(kind: str, place: str) -> list[FaultStatus]:
    return [FaultStatus("first", kind, place, 0, None, 0, 0, 0, "active")]


def test_a_host_has_one_slow_receiver_fault_at_a_time() -> None:
    """Another host may be slow at the same time."""
    there = lasting("slow-receiver", "h1")
    says = "h1 is a slow receiver already; `emu fault clear first` first"
    with pytest.raises(UsageError, match=says):
        check_settings(slow("h1"), there)
    check_settings(slow("h2"), there)


@pytest.mark.parametrize(
    ("place", "other", "clash"),
    [
        ({"switch": "leaf1"}, "leaf1", True),
        ({"switch": "leaf1"}, "leaf1:h1", True),
        ({"port": "leaf1:h1"}, "leaf1", True),
        ({"port": "leaf1:h1"}, "leaf1:h1", True),
        ({"port": "leaf1:h1"}, "leaf1:h10", False),
        ({"port": "leaf1:h1"}, "leaf11", False),
        ({"switch": "leaf1"}, "leaf11:h1", False),
    ],
)
def test_one_fault_at_a_time_changes_a_setting(
    place: dict[str, str], other: str, clash: bool
) -> None:
    """A fault of a switch changes the settings of its ports.

    Different settings may change together.
    """
    wrong = Fault.model_validate({"wrong-ecn": {**place, "kmin": "1MB"}})
    check_settings(wrong, lasting("small-headroom", other))
    if not clash:
        check_settings(wrong, lasting("wrong-ecn", other))
        return
    says = f"{other} has wrong ECN thresholds already; `emu fault clear first` first"
    with pytest.raises(UsageError, match=says):
        check_settings(wrong, lasting("wrong-ecn", other))


def test_infiniband_variants_have_no_pause_storm() -> None:
    """The variant inherits the fault from its base."""
    compare = "\ncompare: {roce: {}, ib: {fabric: ib}}"
    variants = spec_from_text((SPEC + compare).encode(), source="test").variants()
    assert NicFaults(variants["ib"]).status(0, []) == []
    assert len(NicFaults(variants["roce"]).status(0, [])) == 1
