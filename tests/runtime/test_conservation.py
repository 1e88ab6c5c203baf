"""Conservation on any fabric with any faults: every packet is accounted for by its cause.

    sent by NICs + duplicated = received by NICs + dropped, each in one counter + in flight

The same holds for buffer space in switches, all of which is released. Credits prevent every drop
for want of a buffer.

The test counts packets only where they enter and leave the fabric, on the virtual clock, over
topologies, faults and traffic that hypothesis draws.
"""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from emu._core import lib
from emu.runtime.virtual import VirtualFabric
from emu.spec.model import Spec
from emu.spec.rules import contradictions
from tests.support.limits import examples
from tests.support.random_specs import (
    DROPS,
    RECOVERIES,
    ROUTING,
    Yaml,
    cables_of,
    hosts_of,
    switch_ports_of,
    topologies,
    traffic,
)
from tests.support.small_fabrics import finish, outcome_so_far, shortest_paths

WINDOWS = st.builds(
    lambda at, lasts: {"at": f"{at}us", "for": f"{lasts}us"}, st.integers(0, 20), st.integers(1, 20)
)
LINE_FAULTS = ("loss", "corruption", "duplication", "reordering")


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """A fabric, its settings, its load, and up to four faults."""
    fabric = draw(st.sampled_from(["roce", "ib"]))
    routing = ROUTING if fabric == "roce" else st.sampled_from(["ecmp", "spray", "adaptive"])
    topology = draw(topologies())
    switches: Yaml = {
        "buffer": draw(st.sampled_from(["4MB", "16MB"])),
        "switching": draw(st.sampled_from(["store-and-forward", "cut-through"])),
        "routing": {
            "kind": draw(routing),
            "convergence": draw(st.sampled_from(["0ns", "5us", "50us"])),
        },
    }
    if draw(st.booleans()):
        switches["pfc"] = {"xoff": "20KB", "xon": "10KB"}
        switches["watchdog"] = draw(st.sampled_from(["off", *map(watchdog, ("drop", "forward"))]))
    switches["credits"] = {
        "vls": draw(st.sampled_from([1, 2, 8, 15])),
        "buffer": f"{draw(st.integers(5, 128))}KiB",
    }
    hosts, cables = hosts_of(topology), cables_of(topology)
    priorities = st.integers(0, 7) if fabric == "ib" else st.sampled_from([3, 3, 0])
    any_fault = faults(fabric, hosts, cables)
    if fabric == "roce":
        any_fault = st.one_of(any_fault, tunings(switch_ports_of(topology)))
    drawn = Spec.model_validate(
        {
            "name": "drawn",
            "fabric": fabric,
            "seed": draw(st.integers(0, 2**32)),
            "topology": topology,
            "switches": switches,
            "hosts": {"nic": {"recovery": draw(RECOVERIES)}},
            "traffic": draw(traffic(hosts, priorities)),
            "faults": draw(st.lists(any_fault, max_size=4)),
        }
    )
    assume(not contradictions(drawn))
    return drawn


def watchdog(action: str) -> Yaml:
    return {"detection": "20us", "restoration": "20us", "poll": "10us", "action": action}


@st.composite
def faults(draw: st.DrawFn, fabric: str, hosts: list[str], cables: list[str]) -> Yaml:
    """One fault in the first 40 us."""
    cable, window = draw(st.sampled_from(cables)), draw(WINDOWS)
    kinds = [*LINE_FAULTS, "delay", "link-down", "link-flap", "slow-receiver"]
    kind = draw(st.sampled_from(kinds + ["pause-storm"] * (fabric == "roce")))
    what: Yaml = {"cable": cable}
    if kind in LINE_FAULTS:
        what["probability"] = draw(st.sampled_from(["1%", "20%", "100%"]))
    elif kind == "delay":
        what["by"] = f"{draw(st.integers(1, 5000))}ns"
    elif kind == "link-flap":
        what |= {"period": "5us", "down": f"{draw(st.integers(1, 4999))}ns"}
    elif kind in ("slow-receiver", "pause-storm"):
        what = {"host": draw(st.sampled_from(hosts))}
        what |= {"rate": "5Gbit", "buffer": "20KB"} if kind == "slow-receiver" else {}
    return window | {kind: what}


@st.composite
def tunings(draw: st.DrawFn, ports: list[str]) -> Yaml:
    """One misconfiguration of a port or a whole switch in the first 40 us."""
    port, window = draw(st.sampled_from(ports)), draw(WINDOWS)
    whole = {"switch": port.partition(":")[0]}
    where = draw(st.sampled_from([{"port": port}, whole]))
    small = {"small-headroom": {**where, "headroom": f"{draw(st.integers(5, 30))}KB"}}
    wrong = {"wrong-map": {**where, "dscp": {24: draw(st.sampled_from([0, 1, 2, 4, 5]))}}}
    return window | draw(st.sampled_from([small, wrong]))


@examples(60)
@given(specs())
def test_every_packet_is_accounted_for(spec: Spec) -> None:
    """During the run, with the packets in flight, and at its end, with none."""
    topology = spec.topology.build()
    subnet = shortest_paths(topology) if spec.fabric == "ib" else None
    with VirtualFabric(spec, topology, subnet) as run:
        run.start()
        for now_ns in (5_000, 13_000, 29_000):
            run.run_until(now_ns)
            assert 0 <= missing(run) <= lib.fabric_frames_in_use(run.fabric.core)
            assert uncounted_drops(run) == 0
        finish(run, within_ns=30_000_000)
        run.run_until(run.now_ns + 2_000_000)
        assert missing(run) <= lib.fabric_frames_in_use(run.fabric.core)
        if run.finished and lib.fabric_frames_in_use(run.fabric.core) == 0:
            assert missing(run) == 0
            assert held(run) == 0


def held(run: VirtualFabric) -> int:
    """Buffer bytes still in use in switches."""
    switches = run.topology.switch
    ports = [port for port in run.topology.peer if port.node in switches]
    return sum(run.fabric.held(port, klass) for port in ports for klass in range(16))


def missing(run: VirtualFabric) -> int:
    """Packets that were sent, have not arrived, and are in no drop counter."""
    outcome = outcome_so_far(run)
    assert outcome.total("rx_credit_violations") == 0  # hosts never send without credit
    records = run.observe().faults
    hosts = outcome.hosts.values()
    sent = sum(host["tx_packets"] for host in hosts)
    duplicated = sum(record.hits for record in records if record.kind == "duplication")
    ends: list[int] = [sum(outcome.ports[name]["rx_packets"]) for name in host_ports(run)]
    dropped = sum(outcome.total(reason) for reason in DROPS)
    by_faults = sum(record.packets_dropped for record in records if record.kind == "loss")
    return sent + duplicated - sum(ends) - dropped - by_faults


def uncounted_drops(run: VirtualFabric) -> int:
    """Packets in some drop counter, less those in the total of drops by class."""
    outcome, records = outcome_so_far(run), run.observe().faults
    lost = sum(one.packets_dropped for one in records if one.kind in ("loss", "slow-receiver"))
    at_hosts = ("rx_crc_errors", "rx_icrc_encapsulated")
    damaged = sum(host[name] for host in outcome.hosts.values() for name in at_hosts)
    by_reason = sum(outcome.total(reason) for reason in DROPS)
    return by_reason + lost + damaged - outcome.total("dropped")


def host_ports(run: VirtualFabric) -> list[str]:
    """The names of hosts' ports."""
    topology = run.topology
    return [topology.port_name[port] for name in topology.host for port in topology.ports[name]]
