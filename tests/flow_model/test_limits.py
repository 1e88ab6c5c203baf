"""What the flow model refuses, leaves out and warns of."""

from __future__ import annotations

import pytest

from emu.errors import UsageError
from emu.runtime.flow import FlowRunner
from tests.support.flow_runs import by_flows, ends_ns, last_end_ns, with_packets
from tests.support.small_fabrics import PAIR, spec_of, star

VICTIM = """
topology: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 4}
switches: {buffer: 4MB, pfc: {}}
payload: elided
traffic:
  - {name: incast, pattern: incast, from: h5-h8, to: h1, size: 1MB}
  - {name: victim, pattern: pair, from: h5, to: h2, size: 100KB}
"""
"""h1's cable is full, so that the spine is paused, and with it h5's message to h2."""


def test_faults_are_refused() -> None:
    """The error names the key, and says what to use."""
    spec = spec_of(PAIR + "faults: [{at: 1us, link-down: {cable: 'h1:left'}}]\n")
    with pytest.raises(UsageError, match=r"^faults: .*--model packets.*faults=\[\]"):
        FlowRunner().refuse(spec)


def test_tcp_is_refused() -> None:
    """It needs a kernel."""
    with pytest.raises(UsageError, match=r"^stack: tcp .*--clock real"):
        FlowRunner().refuse(spec_of(PAIR, "hosts.stack=tcp"))


def test_a_held_up_flow_is_warned_of() -> None:
    """The warning names the port and the victim, which packets show to be far slower."""
    flow, packets = by_flows(VICTIM), with_packets(VICTIM)
    (warning,) = flow.warnings
    assert "leaf1:h1" in warning
    assert "victim" in warning
    assert "head-of-line blocking" in warning
    assert ends_ns(packets)["victim"] > 1.5 * ends_ns(flow)["victim"]


def test_an_incast_alone_holds_up_nothing_else() -> None:
    """The time of all together is right; the warning says that how they share is not known."""
    text = star(5) + "switches: {buffer: 4MB, pfc: {}}\n"
    text += "traffic: [{name: incast, pattern: incast, from: h2-h5, to: h1, size: 400KB}]\n"
    flow = by_flows(text)
    (warning,) = flow.warnings
    assert warning.startswith("More was sent to s1:h1 than it can carry.")
    assert "how they share it is not known" in warning
    assert last_end_ns(flow) == pytest.approx(last_end_ns(with_packets(text)), rel=0.01)


def test_without_flow_control_packets_would_be_dropped() -> None:
    """A lossy fabric has no victims of pauses, but retransmissions."""
    (warning,) = by_flows(VICTIM, "switches.pfc=off").warnings
    assert "dropped and sent again" in warning


@pytest.mark.parametrize(
    "traffic",
    [
        "{name: t, pattern: all-reduce, algorithm: ring, among: h1-h8, size: 1MB}",
        "{name: t, pattern: alltoall, among: h1-h8, size: 1MB}",
        "{name: t, pattern: pair, from: h1, to: h8, size: 1MB}",
    ],
)
def test_no_warning_where_nothing_waits(traffic: str) -> None:
    """Collectives that fill all cables alike."""
    text = "topology: {kind: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 8}\n"
    assert not by_flows(text + f"switches: {{pfc: {{}}}}\ntraffic: [{traffic}]\n").warnings


def test_a_permutation_on_few_paths_is_warned_of() -> None:
    """Shortest paths by the lowest port leave one path of several in use; packets are slower."""
    text = (
        "topology: {kind: fat-tree, k: 4}\npayload: elided\n"
        "traffic: [{name: job, pattern: permutation, among: h1-h16, size: 2MB}]\n"
    )
    (warning,) = by_flows(text, "fabric=ib").warnings
    assert "head-of-line blocking" in warning


def test_keys_without_effect_are_named() -> None:
    """A capture, and routing that depends on queues."""
    text = star(4) + "traffic: [{name: f, pattern: pair, from: h1, to: h2, size: 1MB}]\n"
    not_known = " ".join(by_flows(text, "capture=[s1:h1]").not_known)
    assert "capture: there is nothing to capture" in not_known
    assert "No bytes were carried" in not_known
    assert "adaptive" not in not_known
    adaptive = by_flows(
        text,
        "switches.routing.kind=adaptive",
        "hosts.nic.recovery=selective-repeat",
        "hosts.nic.reordering=64",
    )
    assert "routing.kind adaptive" in " ".join(adaptive.not_known)
