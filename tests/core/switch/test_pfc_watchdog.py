"""The PFC watchdog, and the deadlocks that only the watchdog ends."""

from __future__ import annotations

import pytest

from emu.measure.counters import ethernet_counters
from emu.runtime.virtual import VirtualFabric
from tests.support.small_fabrics import finish, outcome_of, outcome_so_far, spec_of, started

TWO_TO_ONE_LEAF = """
topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 2}
switches:
  buffer: 2MB
  pfc: {xoff: 96KB}
  watchdog: {detection: 200us, restoration: 300us, poll: 50us}
traffic:
  - {name: fault, pattern: pair, from: h3, to: h1, op: write, size: 8MB}
  - {name: other, pattern: pair, from: h4, to: h2, op: write, size: 8MB}
"""


def storm(*settings: str, until_ns: int = 700_000) -> VirtualFabric:
    """The fabric at `until_ns`, paused by h1 from 100 us to 600 us; the caller closes it."""
    fault = "faults=[{at: 100us, for: 500us, pause-storm: {host: h1, priority: 3}}]"
    spec = spec_of(TWO_TO_ONE_LEAF, fault, *settings)
    run = VirtualFabric(spec, spec.topology.build())
    run.start()
    run.run_until(until_ns)
    return run


def other_progress(run: VirtualFabric, for_ns: int) -> int:
    """Packets that leaf1 sends to h2, which no host pauses, within `for_ns`."""
    before = outcome_so_far(run).ports["leaf1:h2"]["tx_packets"][3]
    run.run_until(run.now_ns + for_ns)
    return int(outcome_so_far(run).ports["leaf1:h2"]["tx_packets"][3] - before)


def test_pause_storm_spreads_without_a_watchdog() -> None:
    """Its leaf fills and pauses the spine, which pauses every sender to that leaf."""
    with storm("switches.watchdog=off", until_ns=500_000) as run:
        assert other_progress(run, 50_000) == 0


@pytest.mark.parametrize("action", ["drop", "forward"])
def test_watchdog_frees_other_flows_within_detection_and_poll(action: str) -> None:
    """The storm begins at 100 us: the queue is stormed by 350 us, and other flows have full speed
    from then on."""
    with storm(f"switches.watchdog.action={action}", until_ns=360_000) as run:
        counters = outcome_so_far(run).ports["leaf1:h1"]
        assert counters["watchdog_detected"][3] == 1
        run.run_until(400_000)
        bytes_sent = other_progress(run, 100_000) * 4178
        assert bytes_sent > 0.4 * 100_000 * 100 / 8  # h1's flow has half of the spine's link


def test_short_pause_does_not_trigger_the_watchdog() -> None:
    """A pause of 500 us is shorter than the detection time."""
    with storm("switches.watchdog.detection=510us") as run:
        outcome = finish(run)
    assert outcome.total("watchdog_detected") == 0
    assert all(flow.completed for flow in outcome.flows.values())


def test_drop_and_forward_treat_stormed_packets_as_named() -> None:
    """The watchdog counts what it drops, as no other counter does; forward drops nothing."""
    with storm() as run:
        dropped = outcome_so_far(run)
    assert dropped.ports["leaf1:h1"]["watchdog_tx_dropped"][3] > 0
    assert dropped.total("rx_buf_discard") + dropped.total("tx_queue_discard") == 0
    with storm("switches.watchdog.action=forward") as run:
        forwarded = outcome_so_far(run)
    assert forwarded.ports["leaf1:h1"]["watchdog_tx_packets"][3] > 100
    assert forwarded.total("watchdog_tx_dropped") + forwarded.total("watchdog_rx_dropped") == 0


def test_packets_from_a_stormed_port_are_dropped_too() -> None:
    """The watchdog drops both directions of the priority, so h1's own packets do not arrive."""
    own = "traffic.1={name: own, pattern: pair, from: h1, to: h4, op: write, size: 8MB}"
    with storm(own) as run:
        assert outcome_so_far(run).ports["leaf1:h1"]["watchdog_rx_dropped"][3] > 0


def test_alert_only_counts() -> None:
    """The storm continues to stop all flows."""
    with storm("switches.watchdog.action=alert", until_ns=500_000) as run:
        assert outcome_so_far(run).ports["leaf1:h1"]["watchdog_detected"][3] == 1
        assert other_progress(run, 50_000) == 0


def test_queue_is_restored_after_the_restoration_time() -> None:
    """Counted from the last pause; then all messages arrive."""
    with storm() as run:
        run.run_until(600_000 + 295_000)
        assert outcome_so_far(run).total("watchdog_restored") == 0
        run.run_until(600_000 + 300_000 + 2 * 50_000)
        assert outcome_so_far(run).ports["leaf1:h1"]["watchdog_restored"][3] == 1
        outcome = finish(run)
    assert all(flow.completed for flow in outcome.flows.values())


def ring(switches: int, hops: int) -> str:
    """Every host sends to the host `hops` further clockwise."""
    hosts = [f"h{n + 1}" for n in range(switches)]
    to = hosts[hops:] + hosts[:hops]
    return f"""
topology: {{kind: ring, switches: {switches}, hosts_per_switch: 1}}
switches: {{buffer: 2MB, pfc: {{xoff: 96KB}}}}
traffic: [{{name: round, pattern: pair, from: {hosts}, to: {to}, op: write, size: 2MB}}]
"""


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize(("switches", "hops"), [(5, 2), (7, 3)])
def test_deadlock_is_reported_port_by_port(switches: int, hops: int, fabric: str) -> None:
    """Each port of the loop leads to the switch of the next port, and none of them ever sends
    again. The same holds for pauses and for missing credit."""
    level = 3 if fabric == "roce" else 0
    with started(spec_of(ring(switches, hops), f"fabric={fabric}")) as run:
        run.run_until(1_000_000)
        (deadlock,) = run.observe().deadlocks
        run.run_until(deadlock.found_ns + 1_000_000)
        before = outcome_so_far(run).ports
        run.run_until(run.now_ns + 5_000_000)
        after = outcome_so_far(run).ports
        (again,) = run.observe().deadlocks
    assert again == deadlock
    assert deadlock.priority == level
    loop = [name.split(":") for name in deadlock.ports]
    assert sorted(own for own, _ in loop) == sorted(f"ring{n + 1}" for n in range(switches))
    following = loop[1:] + loop[:1]
    assert all(far == own for (_, far), (own, _) in zip(loop, following, strict=True))
    for name in deadlock.ports:
        assert after[name]["tx_packets"][level] == before[name]["tx_packets"][level]


def test_only_the_watchdog_ends_a_deadlock() -> None:
    """With the watchdog all messages arrive; the transport resends the packets that it drops."""
    stuck = outcome_of(ring(5, 2), "hosts.nic.timeout=6")
    assert not any(flow.completed for flow in stuck.flows.values())
    watchdog = "switches.watchdog={detection: 100us, restoration: 100us, poll: 50us}"
    freed = outcome_of(ring(5, 2), watchdog, "hosts.nic.timeout=6")
    assert all(flow.completed for flow in freed.flows.values())
    assert freed.total("watchdog_tx_dropped") > 0


def test_congestion_with_progress_is_no_deadlock() -> None:
    """Nor is a pause that a host keeps up."""
    with storm("switches.watchdog=off", until_ns=500_000) as run:
        assert run.observe().deadlocks == ()
    lossy_ring = "switches.pfc=off"
    with started(spec_of(ring(5, 2), lossy_ring)) as run:
        run.run_until(1_000_000)
        assert run.observe().deadlocks == ()


@pytest.mark.parametrize("lanes", [1, 2])
def test_credit_waits_that_end_are_no_deadlock(lanes: int) -> None:
    """Many senders, buffers of a few packets, and all messages arrive."""
    text = """
fabric: ib
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 4}
hosts: {nic: {mtu: 1024}}
traffic: [{name: all, pattern: all-to-all, among: all, op: write, size: 100KB}]
"""
    with started(spec_of(text, f"switches.credits={{vls: {lanes}, buffer: 8KiB}}")) as run:
        finish(run)
        assert run.finished
        assert run.observe().deadlocks == ()


def test_deadlock_of_one_lane_spares_the_other() -> None:
    """The report names the lane."""
    lanes = "switches.credits={vls: 2}"
    other = "{name: other, pattern: pair, from: h1, to: h2, priority: 1, size: 1MB, count: 9}"
    text = ring(5, 2).replace("traffic: [", f"traffic: [{other}, ")
    with started(spec_of(text, "fabric=ib", lanes)) as run:
        run.run_until(5_000_000)
        (deadlock,) = run.observe().deadlocks
        assert deadlock.priority == 0
        assert outcome_so_far(run).flows["other"].completed


def test_last_storm_counters_restart_with_each_storm() -> None:
    """Under SONiC's names: after two storms the plain counters have both, and _LAST the second
    alone; during a storm the status is `stormed`, after it `operational`."""
    two = (
        "faults=[{at: 100us, for: 300us, pause-storm: {host: h1, priority: 3}}, "
        "{at: 1200us, for: 1ms, pause-storm: {host: h1, priority: 3}}]"
    )
    ways = [f"{way}_DROPPED_PACKETS" for way in ("TX", "RX")]
    ways += [f"{way}_PACKETS" for way in ("TX", "RX")]
    with storm(two, until_ns=350_000) as run:
        first = watchdog_counters(run)
        assert first["PFC_WD_STATUS"] == 1
        run.run_until(1_150_000)
        between = watchdog_counters(run)
        run.run_until(2_000_000)
        second = watchdog_counters(run)
    detected = [at["PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"] for at in (first, between, second)]
    assert detected == [1, 1, 2]
    assert [between["PFC_WD_STATUS"], second["PFC_WD_STATUS"]] == [0, 1]
    for way in ways:
        name = f"PFC_WD_QUEUE_STATS_{way}"
        assert between[f"{name}_LAST"] == between[name]
        assert second[f"{name}_LAST"] == second[name] - between[name]
    assert between["PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS"] > 0
    assert second["PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS_LAST"] > 0


def watchdog_counters(run: VirtualFabric) -> dict[str, int]:
    """Watchdog counters of leaf1's port to h1, on the paused priority."""
    counters = ethernet_counters(outcome_so_far(run).ports)["leaf1:h1"]
    return {
        name.removeprefix("prio3_"): count
        for name, count in counters.items()
        if name.startswith("prio3_PFC_WD_")
    }
