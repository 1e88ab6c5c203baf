"""The policy that OpenSM gets, and its effects: every host's lanes, keys and paths."""

from __future__ import annotations

import re
from itertools import pairwise, permutations, product
from pathlib import Path

import networkx as nx
import pytest

from emu.daemon.messages import BorrowedNic
from emu.errors import FabricError
from emu.lab.ipc.codec import from_line, to_line
from emu.runtime.virtual import VirtualFabric, VirtualRunner
from emu.spec.model import Spec, spec_from_text
from emu.spec.rules.subnet import ENGINES_WITH_ROOTS
from emu.subnet.diagnostics import diagnose
from emu.subnet.dumps import parse_lfts
from emu.subnet.manager import ManagedFabric, sweep
from emu.subnet.sm_sweeps import manage, policy_of
from emu.subnet.subnet import Subnet
from topologies.graph import Port, Switch, Topology
from topologies.guids import switch_guid

TREE = "fabric: ib\ntopology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: 2}\n"
RING = "fabric: ib\ntopology: {kind: ring, switches: 5, hosts_per_switch: 1}\n"
FAT_TREE = "fabric: ib\ntopology: {kind: fat-tree, k: 4}\n"
TORUS = "fabric: ib\ntopology: {kind: torus, dimensions: [3, 3], hosts_per_switch: 1}\n"
FABRICS = {"tree": TREE, "fat tree": FAT_TREE, "ring": RING, "torus": TORUS}


def spec_of(text: str, *settings: str) -> Spec:
    return spec_from_text(text.encode(), source="test.emu.yml", settings=settings)


def tables(spec: Spec, workdir: Path) -> tuple[Topology, Subnet]:
    topology = spec.topology.build()
    return topology, sweep(topology, policy=policy_of(spec), workdir=workdir)


def waits(topology: Topology, subnet: Subnet) -> nx.DiGraph:
    """The graph of credit dependencies: from each port of a path to the next one, per service
    level."""
    graph = nx.DiGraph()
    for src, dst in permutations(topology.host, 2):
        level = subnet.levels.get(src, {}).get(dst, 0)
        path = [(port, level) for port in subnet.path(topology, src, dst)]
        graph.add_edges_from(pairwise(path))
    return graph


def test_updn_with_a_root_avoids_credit_loops_in_a_ring(tmp_path: Path) -> None:
    """A packet that went down never goes up again, so no dependency returns to its start."""
    topology, subnet = tables(spec_of(RING, "subnet.roots=[ring1]"), tmp_path)
    assert subnet.engine == "updn"
    assert nx.is_directed_acyclic_graph(waits(topology, subnet))


def test_minhop_makes_a_credit_loop_in_a_ring(tmp_path: Path) -> None:
    """Shortest paths of two hops go all around the ring."""
    topology, subnet = tables(spec_of(RING, "subnet.engine=minhop"), tmp_path)
    assert not nx.is_directed_acyclic_graph(waits(topology, subnet))


@pytest.mark.parametrize("engine", ["dfsssp", "lash"])
def test_engines_with_lanes_avoid_credit_loops_in_a_ring(engine: str, tmp_path: Path) -> None:
    """The service levels of path records separate paths that would form a loop."""
    spec = spec_of(RING, f"subnet.engine={engine}", "switches.credits.vls=8")
    topology = spec.topology.build()
    pairs = list(permutations(topology.host, 2))
    subnet = sweep(topology, policy=policy_of(spec), workdir=tmp_path, pairs=pairs)
    assert subnet.engine == engine
    assert len({subnet.levels[src][dst] for src, dst in pairs}) > 1
    assert nx.is_directed_acyclic_graph(waits(topology, subnet))


GRAPH = """
fabric: ib
topology:
  kind: graph
  switches: [r1, r2, r3, r4, r5]
  hosts: [h1, h2, h3, h4, h5]
  links:
    - {between: [r1, r2]}
    - {between: [r2, r3]}
    - {between: [r3, r4]}
    - {between: [r4, r5]}
    - {between: [r5, r1]}
    - {between: [h1, r1]}
    - {between: [h2, r2]}
    - {between: [h3, r3]}
    - {between: [h4, r4]}
    - {between: [h5, r5]}
"""
ROUND = "traffic=[{name: round, pattern: pair, from: all, to: ['all[2:]', 'all[:2]'], size: 2MB}]"


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        (["subnet.engine=updn"], r"name its roots, e\.g\. subnet\.roots: \[r1\], or ask for"),
        (["subnet.engine=ftree"], r"use engine: updn with roots, e\.g\. \[r1\], or ask for"),
        (["subnet.engine=ftree", "subnet.roots=[r1]"], "use engine: updn with roots"),
    ],
)
def test_requested_engine_that_cannot_route_is_an_error(
    settings: list[str], remedy: str, tmp_path: Path
) -> None:
    """OpenSM silently uses minhop; the emulator refuses."""
    spec = spec_of(GRAPH, *settings)
    engine = spec.subnet.engine
    said = f"subnet.engine: OpenSM cannot route .* by {engine} and continued with minhop"
    with pytest.raises(FabricError, match=f"{said}.*; {remedy}.* engine: minhop$"):
        manage(spec, spec.topology.build(), tmp_path)


@pytest.mark.parametrize("settings", [["subnet.roots=[r1]"], ["subnet.engine=minhop"]])
def test_suggested_remedies_route_the_ring(settings: list[str], tmp_path: Path) -> None:
    """Without a note, because OpenSM did what the spec asks."""
    spec = spec_of(GRAPH, *settings)
    subnet = manage(spec, spec.topology.build(), tmp_path)
    assert (subnet.engine, subnet.notes) == (spec.subnet.engine, ())


def test_fallback_of_the_default_engine_is_noted(tmp_path: Path) -> None:
    """The spec does not ask for updn in a ring, so the run goes on."""
    spec = spec_of(RING, "traffic=[{name: a, pattern: pair, from: h1, to: h2, size: 1KB}]")
    topology = spec.topology.build()
    subnet = manage(spec, topology, tmp_path)
    assert subnet.engine == "minhop"
    (note,) = VirtualRunner(subnet).run(spec, out=tmp_path).notes
    assert note.startswith("OpenSM cannot route this fabric by updn and continued with minhop")
    assert from_line(to_line(BorrowedNic(1, subnet))) == BorrowedNic(1, subnet)


def test_engine_change_after_link_loss_is_noted_once(tmp_path: Path) -> None:
    """A leaf with one spine of two makes no fat tree. There is one note for all sweeps."""
    flap = "link-flap: {cable: leaf1:spine1, down: 50us, period: 100us}"
    spec = spec_of(TREE, "subnet.engine=ftree", f"faults=[{{at: 100us, for: 1ms, {flap}}}]")
    topology = spec.topology.build()
    subnet = manage(spec, topology, tmp_path)
    assert subnet.engine == "ftree"
    note = "OpenSM could not route the remaining links by ftree, and continued with minhop"
    assert (subnet.notes, subnet.notes_up_to(10**12)) == ((), (note,))


@pytest.mark.parametrize("engine", ["dfsssp", "lash"])
def test_engines_with_lanes_are_refused_on_one_lane(engine: str, tmp_path: Path) -> None:
    """They separate paths by service levels, which all share the only lane, so the paths form a
    credit loop."""
    spec = spec_of(RING, f"subnet.engine={engine}", ROUND)
    topology = spec.topology.build()
    hop = r"ring\d:ring\d"
    said = rf"{engine} keeps .*credits\.vls: 1\) they form .*: {hop}, {hop}, {hop}, {hop}, \.\.\.; "
    with pytest.raises(FabricError, match=rf"{said}raise switches\.credits\.vls, to 8"):
        manage(spec, topology, tmp_path / "one")
    enough = spec_of(RING, f"subnet.engine={engine}", ROUND, "switches.credits.vls=8", LOW)
    subnet = manage(enough, topology, tmp_path / "eight")
    assert VirtualRunner(subnet).run(enough, out=tmp_path).flows
    merged = spec_of(
        RING, f"subnet.engine={engine}", ROUND, "switches.credits.vls=8", f"subnet.sl2vl={[0] * 16}"
    )
    with pytest.raises(FabricError, match="form a credit loop"):
        manage(merged, topology, tmp_path / "merged")


@pytest.mark.parametrize(
    ("engine", "text"), [("nue", RING), ("dfsssp", TREE), ("lash", TREE), ("updn", RING)]
)
def test_one_lane_is_enough_without_credit_loops(engine: str, text: str, tmp_path: Path) -> None:
    """nue works with any number of lanes, and no paths in a tree form a loop."""
    roots = ["subnet.roots=[ring1]"] if engine == "updn" else []
    traffic = ROUND if text == RING else ROUND.replace("from: all", "from: all, op: read")
    spec = spec_of(text, f"subnet.engine={engine}", traffic, *roots)
    assert manage(spec, spec.topology.build(), tmp_path).engine == engine


def test_sweep_writes_nothing_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """InfiniBand's tools write folders where they run; here the working directory does not
    exist."""
    gone = tmp_path / "gone"
    gone.mkdir()
    spec = spec_of(RING, "subnet.engine=dfsssp", "switches.credits.vls=8")
    topology = spec.topology.build()
    monkeypatch.chdir(gone)
    gone.rmdir()
    subnet = sweep(topology, policy=policy_of(spec), workdir=tmp_path, pairs=[("h1", "h3")])
    assert subnet.levels["h1"].keys() == {"h3"}


NO_TREES = ("ring", "torus")


@pytest.mark.parametrize(
    ("engine", "fabric"),
    [
        (engine, fabric)
        for engine in ("minhop", "updn", "ftree", "dor", "dfsssp")
        for fabric in FABRICS
        if engine != "ftree" or fabric not in NO_TREES
    ],
)
def test_switches_forward_by_the_dumped_tables(engine: str, fabric: str, tmp_path: Path) -> None:
    """With each engine: a packet for each LID leaves each switch by the port in `opensm-lfts.dump`,
    and every host reaches every host."""
    spec = spec_of(
        FABRICS[fabric],
        f"subnet.engine={engine}",
        *LANES,
        *(ROOTS.get(fabric, ()) if engine in ENGINES_WITH_ROOTS else ()),
    )
    topology = spec.topology.build()
    subnet = manage(spec, topology, tmp_path)
    assert (subnet.engine, subnet.notes) == (engine, ())
    for src, dst in permutations(topology.host, 2):
        assert subnet.path(topology, src, dst)
    dumped = parse_lfts((tmp_path / "opensm-lfts.dump").read_text())
    for switch in topology.switches:
        rows = dumped[switch_guid(switch)]
        assert ways_out(spec, subnet, switch) == {lid: port for lid, port in rows.items() if port}


LOW = f"subnet.vl_arbitration.low={dict.fromkeys(range(8), 64)}"
LANES = ("switches.credits.vls=8", LOW)
ROOTS = {"ring": ("subnet.roots=[ring1]",), "torus": ("subnet.roots=[t1_1]",)}


def ways_out(spec: Spec, subnet: Subnet, switch: Switch) -> dict[int, int]:
    """The port by LID through which a running switch sends packets, for each LID that it
    forwards."""
    topology = spec.topology.build()
    own = topology.ports[switch.name]
    ways: dict[int, int] = {}
    with VirtualFabric(spec, topology, subnet) as run:
        run.start()
        for lid in range(1, max(subnet.lids.values()) + 2):
            run.inject(topology.port_name[topology.peer[own[0]]], packet_for(lid))
            before = [sent(run, port) for port in own]
            run.run_until(run.now_ns + 2_000)
            by = [p.number for p, n in zip(own, before, strict=True) if sent(run, p) > n]
            ways.update((lid, number) for number in by)
    return ways


def sent(run: VirtualFabric, port: Port) -> int:
    return sum(run.fabric.counters(port)["tx_packets"])


def packet_for(lid: int) -> bytes:
    """LRH (SL 0, to this LID, from 0xbfff), a BTH of zeros, and room for the CRCs."""
    words = (8 + 12 + 4) // 4
    return bytes([0, 0x02, *lid.to_bytes(2), 0, words, 0xBF, 0xFF]) + bytes(12 + 4 + 2)


def test_lmc_gives_a_host_several_lids_and_paths(tmp_path: Path) -> None:
    """Two LIDs per host; the two paths from the other rack use different spines."""
    topology, subnet = tables(spec_of(TREE, "subnet.lmc=1"), tmp_path)
    assert all(subnet.lids[host] % 2 == 0 for host in topology.host)
    ways = {subnet.path(topology, "h1", "h3", offset)[2].node for offset in (0, 1)}
    assert ways == {"spine1", "spine2"}


SETTINGS = (
    "switches.credits.vls=8",
    "subnet.sl2vl=[0, 1, 2, 3, 4, 5, 6, 7, 7, 6, 5, 4, 3, 2, 1, 15]",
    "subnet.vl_arbitration={high: {0: 4, 1: 8}, low: {2: 64, 3: 1}, high_limit: 4}",
    "subnet.partitions={blue: {pkey: 0x12, full: h1, limited: h2}}",
)


def ask(managed: ManagedFabric, *words: str) -> str:
    """The output of one of the diagnostics at h4."""
    return diagnose(managed.simulator, "h4", words).text


def test_ports_get_lanes_weights_and_keys(tmp_path: Path) -> None:
    """smpquery reads the spec's values from the fabric."""
    spec = spec_of(TREE, *SETTINGS)
    with ManagedFabric(spec.topology.build(), policy_of(spec), tmp_path) as managed:
        lids = managed.subnet().lids
        sl2vl = ask(managed, "smpquery", "sl2vl", str(lids["leaf1"]), "1")
        weights = ask(managed, "smpquery", "vlarb", str(lids["leaf1"]), "1")
        keys = {h: ask(managed, "smpquery", "pkeys", str(lids[h]), "1") for h in ("h1", "h2", "h3")}
    rows = re.findall(r"out  1: ((?:\| ?\d+)+)", sl2vl)
    assert rows
    assert {tuple(map(int, row.replace("|", " ").split())) for row in rows} == {spec.subnet.sl2vl}
    assert re.findall(r"VL    : \|0x2 \|0x3 .*\nWEIGHT: \|0x40\|0x1 ", weights)
    assert re.findall(r"VL    : \|0x0 \|0x1 .*\nWEIGHT: \|0x4 \|0x8 ", weights)
    assert {h: [k for k in ("0x8012", "0x0012") if k in keys[h]] for h in keys} == {
        "h1": ["0x8012"],
        "h2": ["0x0012"],
        "h3": [],
    }


def test_tables_change_with_a_lost_link_and_return(tmp_path: Path) -> None:
    """No path crosses the cable while it is down; LIDs stay as they are."""
    fault = "faults=[{at: 100us, for: 1ms, link-down: {cable: leaf1:spine1}}]"
    spec = spec_of(TREE, fault)
    topology = spec.topology.build()
    subnet = manage(spec, topology, tmp_path)
    assert [later.at_ps for later in subnet.later] == [100_000_000, 1_100_000_000]
    lost = topology.cable[topology.port_named["leaf1:spine1"]]
    without = Subnet(subnet.lids, subnet.later[0].lfts, "updn", 0)
    for src, dst in product(("h1", "h2"), ("h3", "h4")):
        for path in (without.path(topology, src, dst), without.path(topology, dst, src)):
            assert lost not in [topology.cable[port] for port in path]
    assert subnet.later[1].lfts == subnet.lfts
