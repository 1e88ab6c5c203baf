"""Routes when links fail and return, for every load balancing scheme: computed in advance from the
spec's faults, or sent to the running fabric, as in a lab whose faults users set."""

from __future__ import annotations

import pytest

from emu._core import lib
from emu.runtime.virtual import VirtualFabric
from emu.spec.fault import Fault
from emu.spec.outages import degraded
from tests.support.small_fabrics import Outcome, finish, outcome_so_far, spec_of, started

CLOS = """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 4}
switches: {pfc: {}}
hosts: {nic: {recovery: selective-repeat, timeout: 4}}
traffic: [{name: pairs, pattern: pair, from: h1-h4, to: h5-h8, op: write, size: 4MB}]
"""
ALL_ON_SPINE1 = ", ".join(f"pairs.h{n}-h{n + 4}: spine1" for n in range(1, 5))
KINDS = {
    "ecmp": "",
    "ecmp-qp": "",
    "pinned": f", paths: {{{ALL_ON_SPINE1}}}",
    "flowlet": ", gap: 1ns",
    "spray": "",
    "adaptive": "",
}
OUTAGES = {
    "near": "link-down: {cable: 'leaf1:spine1'}",
    "far": "link-down: {cable: 'leaf2:spine1'}",
    "switch": "switch-down: {switch: spine1}",
}
BEGINS, CONVERGENCE, ENDS = 30_000, 20_000, 330_000
"""Nanoseconds."""
DRAINING = 30_000
"""Nanoseconds in which a port of 100 Gbit/s sends 375 KB: more than waits for it when routes
change."""


def routing(kind: str) -> str:
    return f"switches.routing={{kind: {kind}, convergence: 20us{KINDS[kind]}}}"


def fault_at(outage: str) -> str:
    return f"{{name: cut, at: {BEGINS}ns, for: {ENDS - BEGINS}ns, {OUTAGES[outage]}}}"


def at(run: VirtualFabric, now_ns: int) -> Outcome:
    run.run_until(now_ns)
    return outcome_so_far(run)


def over_spine1(outcome: Outcome) -> int:
    """Bytes that leaf1 has sent over spine1."""
    return sum(outcome.ports["leaf1:spine1"]["tx_bytes"])


def lost(outcome: Outcome) -> int:
    return outcome.total("link_down_discard")


@pytest.mark.parametrize("outage", OUTAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_scheme_avoids_a_failed_link_and_returns(kind: str, outage: str) -> None:
    """Packets are lost until `convergence` after the failure, none later; spine1 is used again up
    to `convergence` after its return, and every flow completes."""
    with started(spec_of(CLOS, routing(kind), f"faults=[{fault_at(outage)}]")) as run:
        before = at(run, BEGINS - 1)
        converged = at(run, BEGINS + CONVERGENCE + DRAINING)
        late = at(run, ENDS - 1)
        back = at(run, ENDS + CONVERGENCE - 1_000)
        outcome = finish(run, within_ns=40_000_000)
    assert over_spine1(before) > 0
    assert lost(before) == 0 < lost(converged) == lost(late) == lost(outcome)
    assert over_spine1(converged) == over_spine1(late) == over_spine1(back) < over_spine1(outcome)
    assert all(flow.completed for flow in outcome.flows.values())


@pytest.mark.parametrize("kind", KINDS)
def test_flapping_link_is_avoided_each_time(kind: str) -> None:
    """Three outages; in each the link carries nothing from `convergence` on until it is back."""
    flap = "link-flap: {cable: 'leaf1:spine1', period: 300us, down: 150us}"
    faults = f"faults=[{{at: 30us, for: 900us, {flap}}}]"
    with started(spec_of(CLOS, routing(kind), faults, "traffic.pairs.size=40MB")) as run:
        for begin in (30_000, 330_000, 630_000):
            away = at(run, begin + CONVERGENCE + 2_000)
            still = at(run, begin + 150_000 + CONVERGENCE - 2_000)
            again = at(run, begin + 300_000 - 1)
            assert over_spine1(away) == over_spine1(still) < over_spine1(again)


def reroute_until(run: VirtualFabric, until_ns: int) -> None:
    """Runs on, and answers each link change with new routes, as a lab does."""
    flag = run.fabric.links_changed_flag
    whole = now = run.topology
    while run.now_ns < until_ns:
        lib.fabric_run_to_event(run.fabric.core, until_ns * 1000, flag)
        changes = run.fabric.take_link_changes()
        if changes is None:
            continue
        at_ps, down = changes
        before, now = now, degraded(whole, down)
        routes = {
            switch: {host: [port.number for port in ports] for host, ports in changed.items()}
            for switch, changed in before.changed_hops(now)
        }
        in_force_ps = run.fabric.reroute(routes, at_ps)
        assert in_force_ps == at_ps + CONVERGENCE * 1000


@pytest.mark.parametrize("kind", KINDS)
def test_routes_sent_live_equal_those_computed_in_advance(kind: str) -> None:
    """A fault set and cleared while the fabric runs has the effect of the spec's fault."""
    spec = spec_of(CLOS, routing(kind), f"faults=[{fault_at('near')}]")
    with started(spec) as run:
        run.run_until(ENDS + CONVERGENCE + 50_000)
        planned = outcome_so_far(run)
    (fault,) = spec.faults
    with started(spec_of(CLOS, routing(kind))) as run:
        run.fabric.add_faults((Fault.model_validate(fault.to_mapping()),))
        reroute_until(run, ENDS + CONVERGENCE + 50_000)
        live = outcome_so_far(run)
    assert live.ports == planned.ports


def test_long_flapping_takes_no_more_memory() -> None:
    """The same lists of next hops repeat, and the switch keeps each once."""
    with started(spec_of(CLOS, "traffic=[]", "switches.routing.convergence=0ns")) as run:
        for _ in range(20_000):
            run.fabric.reroute({"leaf1": {"h5": [6]}}, 0)
            run.fabric.reroute({"leaf1": {"h5": [5, 6]}}, 0)
        kept = lib.switch_routes_kept(run.fabric.switches["leaf1"])
    assert kept < 50


def test_flapping_faster_than_convergence_takes_no_memory() -> None:
    """Some changes are always pending; the switch forgets those in force."""
    with started(spec_of(CLOS, "traffic=[]", "switches.routing.convergence=10us")) as run:
        for _ in range(2_000):
            for hops in ([6], [5, 6]):
                run.fabric.reroute({"leaf1": {"h5": hops}}, run.now_ns * 1000)
                run.run_until(run.now_ns + 1_000)
        kept = lib.switch_routes_kept(run.fabric.switches["leaf1"])
    assert kept < 100
