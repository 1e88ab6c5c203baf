"""Service levels of paths after sweeps during a run.

In a ring of five lash needs two layers (LASH: Skeie, Lysne, Theiss, IPDPS 2002: a path joins a
layer unless it would form a cycle there). A cut ring is a line, where no paths form a cycle, so one
layer suffices. The service levels before and after a cut are therefore known.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emu.daemon.messages import BorrowedNic, GetPathLevels, PathLevels
from emu.errors import FabricError
from emu.lab import live_subnet
from emu.lab.ipc.channel import Channel
from emu.lab.ipc.codec import from_line, to_line
from emu.lab.ipc.routing import LinksChanged, Tables
from emu.lab.live_subnet import LiveSubnet
from emu.rdma import AH, Lab, QPAttr, QPType, SendWR
from emu.rdma.own_lab import borrow_nics
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import spec_from_text
from emu.spec.scenario import Spec
from emu.subnet import opensm
from emu.subnet.manager import ManagedFabric, Pair
from emu.subnet.opensm import OpenSm
from emu.subnet.programs import text_of
from emu.subnet.routing_check import KeptLevels, engine_note, kept_levels
from emu.subnet.sm_sweeps import manage, policy_of
from emu.subnet.subnet import PathSLs, Resweep, Subnet
from tests.support.capture_checker import frames_of
from tests.support.waiting import eventually

RING = """
name: ring
fabric: ib
topology: {kind: ring, switches: 5, hosts_per_switch: 1}
traffic: [{name: t, pattern: all-to-all, among: all, op: write, size: 10KB}]
switches: {credits: {vls: 2}, routing: {convergence: 20us}}
subnet: {engine: lash, vl_arbitration: {high: {}, low: {0: 64, 1: 64}}}
"""
CUT = "faults=[{at: 100us, for: 1ms, link-down: {cable: ring1:ring2}}]"
ALONE = "faults=[{at: 100us, link-down: {cable: ring2:h2}}]"


def spec_of(*settings: str) -> Spec:
    return spec_from_text(RING.encode(), source="ring.emu.yml", settings=settings)


def kinds(levels: PathSLs) -> set[int]:
    return {level for own in levels.values() for level in own.values()}


def paths(levels: PathSLs) -> set[tuple[str, str]]:
    return {(src, dst) for src, own in levels.items() for dst in own}


@pytest.fixture(scope="module")
def subnet(tmp_path_factory: pytest.TempPathFactory) -> Subnet:
    spec = spec_of(CUT)
    return manage(spec, spec.topology.build(), tmp_path_factory.mktemp("subnet"))


def test_path_records_are_queried_after_each_sweep(subnet: Subnet) -> None:
    """Two layers in the ring, one in the line, two again."""
    cut, again = subnet.later
    assert kinds(subnet.levels) == {0, 1}
    assert kinds(cut.levels) == {0}
    assert paths(cut.levels) == paths(subnet.levels)
    assert again.levels == subnet.levels


def test_service_levels_of_resweeps_survive_json(subnet: Subnet) -> None:
    assert from_line(to_line(BorrowedNic(1, subnet))) == BorrowedNic(1, subnet)


def test_isolated_host_has_no_paths(tmp_path: Path) -> None:
    """The sweep does not wait for answers about it; all other hosts have their paths."""
    spec = spec_of(ALONE)
    subnet = manage(spec, spec.topology.build(), tmp_path)
    alone, _ = subnet.later  # the run ends with all links
    assert paths(alone.levels) == {pair for pair in paths(subnet.levels) if "h2" not in pair}


def test_opensm_log_is_read_once_for_all_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is long, and a fabric of 64 hosts has 4032 paths."""
    spec = spec_of()
    topology = spec.topology.build()
    with ManagedFabric(topology, policy_of(spec), tmp_path) as managed:
        managed.subnet()
        reads: list[Path] = []

        def noted_text_of(log: Path) -> str:
            reads.append(log)
            return text_of(log)

        monkeypatch.setattr(opensm, "text_of", noted_text_of)
        levels = managed.levels(permutations(topology.host, 2))
    assert len(paths(levels)) == 20
    assert reads == [tmp_path / "opensm.log"]


def test_kept_service_levels_are_noted(subnet: Subnet) -> None:
    """As many as had the other level. In a line the kept levels form no credit loop."""
    others = sum(level for own in subnet.levels.values() for level in own.values())
    note = (
        f"after a sweep {others} of 20 paths have another service level; queue pairs that are "
        "connected keep theirs, and by the new tables their paths form no credit loop"
    )
    assert [later.notes for later in subnet.later] == [(note,), ()]
    assert subnet.notes_up_to(99_999_999) == ()
    assert subnet.notes_up_to(100_000_000) == (note,)


@pytest.mark.parametrize(("convergence", "is_in_force"), [("5us", True), ("1ms", False)])
def test_sweep_is_noted_when_its_tables_are_in_force(
    subnet: Subnet, convergence: str, is_in_force: bool, tmp_path: Path
) -> None:
    """The results list it then. The run ends long before a millisecond."""
    flow = "traffic=[{name: a, pattern: pair, from: h3, to: h4, op: write, size: 100KB}]"
    cut = "faults=[{at: 1us, link-down: {cable: ring1:ring2}}]"
    spec = spec_of(flow, cut, f"switches.routing.convergence={convergence}")
    later = Resweep(1_000_000, subnet.later[0].lfts, subnet.later[0].levels, ("swept",))
    with_note = replace(subnet, later=(later,))
    run = VirtualRunner(with_note).run(spec, out=tmp_path)
    assert (run.notes, len(run.sweeps)) == ((("swept",), 1) if is_in_force else ((), 0))


def test_credit_loop_of_kept_levels_is_noted(subnet: Subnet) -> None:
    """If all queue pairs had connected on the line's one level, the ring's paths would form a
    loop."""
    kept = checked_levels([subnet.later[0].levels], subnet)
    assert kept
    assert "form a credit loop: ring" in kept.note


def test_unchanged_service_levels_need_no_note(subnet: Subnet) -> None:
    assert checked_levels([subnet.levels], subnet) is None


def test_credit_loop_is_noted_without_path_levels(subnet: Subnet) -> None:
    """An engine without levels gives none in path records, so queue pairs keep theirs. Without the
    paths of one host in five no loop of the ring remains."""
    tables = replace(subnet, levels={})
    kept = checked_levels([subnet.later[0].levels], tables)
    assert kept
    assert (kept.changed, kept.paths) == (0, 20)
    assert "form a credit loop: ring" in kept.note
    assert checked_levels([subnet.levels], tables) is None
    assert checked_levels([subnet.later[0].levels], tables, without="h2") is None


def test_levels_of_several_sweeps_are_checked_together(subnet: Subnet) -> None:
    """With the two levels swapped, paths stay separate; with half of the queue pairs on either
    assignment they do not."""
    swapped = {
        src: {dst: 1 - level for dst, level in own.items()} for src, own in subnet.levels.items()
    }
    alone, both = (
        checked_levels(tables, subnet) for tables in ([swapped], [subnet.levels, swapped])
    )
    assert alone
    assert both
    assert (alone.changed, alone.paths, alone.credit_loop) == (20, 20, "")
    assert (both.changed, both.paths) == (20, 20)
    assert both.credit_loop.startswith("ring")


def checked_levels(connected: list[PathSLs], now: Subnet, without: str = "") -> KeptLevels | None:
    """The check of queue pairs on these levels under the tables of `now`. `without`: an isolated
    host."""
    spec = spec_of()
    topology = spec.topology.build()
    left = [pair for pair in permutations(topology.host, 2) if without not in pair]
    return kept_levels(spec, topology, connected, now, left)


def test_queue_pair_after_a_sweep_has_the_new_level() -> None:
    """Verbs on the virtual clock: before the sweep, while its tables are not in force yet, and
    afterwards."""
    with Lab(spec_of(CUT)) as lab:
        contexts = [lab.host(f"h{index}").rdma for index in range(1, 6)]

        def now() -> set[int]:
            return {a.service_level(b.address) for a in contexts for b in contexts if a is not b}

        seen = [now()]
        for until_ns in (110_000, 125_000, 1_110_000, 1_125_000):
            lab.run(lab.sleep(until_ns - lab.now_ns))
            seen.append(now())
    assert seen == [{0, 1}, {0, 1}, {0}, {0}, {0, 1}]


def test_datagrams_have_the_level_of_their_path(tmp_path: Path) -> None:
    """As captured on the host's cable: SL in the upper half of the LRH's second byte."""
    with Lab(spec_of("capture=[ring1:h1]"), out=tmp_path) as lab:
        h1, *others = (lab.host(f"h{index}").rdma for index in range(1, 6))
        qp = h1.alloc_pd().create_qp(QPType.UD, h1.create_cq(8), max_inline_data=1)
        qp.to_init(QPAttr(qkey=1))
        qp.to_rtr(QPAttr())
        qp.to_rts()
        for far in others:
            qp.post_send(SendWR(inline=b"x", ah=AH(far.address), remote_qpn=1, remote_qkey=1))
        lab.run(lab.sleep(10_000))
        expected = {far.address: h1.service_level(far.address) for far in others}
    (capture,) = tmp_path.iterdir()
    seen = (frame.data for frame in frames_of(capture.read_bytes()))
    packets = [packet for packet in seen if len(packet) > 6]
    assert {int.from_bytes(packet[2:4]): packet[1] >> 4 for packet in packets} == expected
    assert set(expected.values()) == {0, 1}


class ShimEnd:
    """The shim's end of the channel to a lab's subnet manager."""

    def __init__(self, subnet: LiveSubnet) -> None:
        self._line = Channel(subnet.far)

    def lose(self, *cables: str) -> None:
        """Reports the cables as down, and waits for new tables."""
        self._line.send(LinksChanged(0, cables))
        self._line.expect(Tables)


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveSubnet]:
    """A lab's subnet manager, without the lab."""
    monkeypatch.setattr(live_subnet, "PRIVATE", tmp_path)
    supervisor: Any = SimpleNamespace(watch_child=lambda name, pid: None)
    spec = spec_of()
    subnet = LiveSubnet(spec, spec.topology.build(), supervisor, all_hosts=False)
    yield subnet
    subnet.far.close()  # ends its thread
    subnet._managed.__exit__(None, None, None)


def test_lab_gives_later_nics_the_new_levels(live: LiveSubnet) -> None:
    """The NICs of the start keep two levels, and a note says so."""
    shim = ShimEnd(live)
    first = live.connect()
    shim.lose("ring1:ring2")
    eventually(lambda: kinds(live.now.levels) == {0})
    assert kinds(first.levels) == {0, 1}
    eventually(lambda: "of 20 paths have another service level" in str(live.notes))
    assert kinds(live.connect().levels) == {0}
    assert live.notes == []  # all NICs have the levels of path records


def test_lab_keeps_only_the_last_note_on_levels(
    live: LiveSubnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For any number of link changes; but a note on a credit loop stays."""
    one, two, loop, four = (
        KeptLevels(paths, 20, closed) for paths, closed in ((1, ""), (2, ""), (3, "a"), (4, ""))
    )
    now = [one]  # the same for every sweep of one change
    monkeypatch.setattr(live_subnet, "kept_levels", lambda *_: now[0])
    shim = ShimEnd(live)
    for now[0], cable, kept_notes in (
        (one, "ring1:ring2", [one]),
        (two, "ring2:ring3", [two]),
        (loop, "ring3:ring4", [loop]),
        (four, "ring4:ring5", [loop, four]),
    ):
        shim.lose(cable)
        notes = [kept.note for kept in kept_notes]
        eventually(lambda notes=notes: live.notes == notes)  # type: ignore[misc]


def test_lab_checks_a_sweep_by_an_engine_without_levels(
    live: LiveSubnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earlier note no longer applies: by the whole ring's tables the first queue pairs form no
    credit loop."""
    shim = ShimEnd(live)
    shim.lose("ring1:ring2")
    eventually(lambda: "of 20 paths have another service level" in str(live.notes))
    monkeypatch.setattr(OpenSm, "engine_used", lambda self: "minhop")
    shim.lose()
    eventually(lambda: live.now.levels == {})
    eventually(lambda: live.notes == [engine_note("lash", "minhop")])


def test_lab_checks_connections_between_two_sweeps(live: LiveSubnet) -> None:
    """Together with the first ones: they use the line's one level, which forms a credit loop in the
    ring."""
    shim = ShimEnd(live)
    live.connect()
    shim.lose("ring1:ring2")
    eventually(lambda: kinds(live.now.levels) == {0})
    assert kinds(live.join().levels) == {0}
    eventually(lambda: "of 20 paths have another service level" in str(live.notes))
    shim.lose()
    eventually(lambda: "form a credit loop: ring" in str(live.notes))


def test_lab_checks_levels_while_they_can_be_in_use(
    live: LiveSubnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each assignment once, until all NICs are new."""
    asked: list[list[PathSLs]] = []
    monkeypatch.setattr(live_subnet, "kept_levels", lambda *arguments: asked.append(arguments[2]))
    shim = ShimEnd(live)
    first = live.connect().levels
    shim.lose("ring1:ring2")
    eventually(lambda: kinds(live.now.levels) == {0})
    line = live.join().levels
    assert live.join().levels == line
    shim.lose("ring2:ring3")
    eventually(lambda: [first, line] in asked)
    later = live.connect().levels
    shim.lose("ring3:ring4")
    eventually(lambda: asked[-1] == [later])


@pytest.mark.parametrize("in_vain", [1, 2])
def test_lab_queries_missing_path_records_again(
    live: LiveSubnet, monkeypatch: pytest.MonkeyPatch, in_vain: int
) -> None:
    """As when a cable fails during the query."""
    ignore_queries(live, monkeypatch, in_vain)
    ShimEnd(live).lose("ring1:ring2")
    eventually(lambda: kinds(live.now.levels) == {0})
    assert paths(live.now.levels) == set(live._pairs)
    eventually(lambda: "of 20 paths have another service level" in str(live.notes))
    assert "does not answer" not in str(live.notes)


def test_lab_paths_without_an_answer_have_no_levels(
    live: LiveSubnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No queue pair connects by levels of the tables before; a note says so."""
    ignore_queries(live, monkeypatch, 1000)
    ShimEnd(live).lose("ring1:ring2")
    note = (
        "after a sweep 20 of 20 paths have no service level; queue pairs that connect now use "
        "hosts.nic.sl there: OpenSM does not answer h3"
    )
    eventually(lambda: note in live.notes)
    eventually(lambda: live.now.levels == {})


def ignore_queries(live: LiveSubnet, monkeypatch: pytest.MonkeyPatch, in_vain: int) -> None:
    """Makes OpenSM ignore the first `in_vain` queries for paths."""
    answer, asked = live._managed.levels, []

    def levels(pairs: Iterable[Pair]) -> PathSLs:
        asked.append(pairs)
        if len(asked) <= in_vain:
            raise FabricError("OpenSM does not answer h3")
        return answer(pairs)

    monkeypatch.setattr(live._managed, "levels", levels)


def test_borrowed_lab_queries_levels_that_came_later(subnet: Subnet) -> None:
    """When the lab was borrowed, OpenSM had fallen back to an engine without levels."""
    topology = spec_of().topology.build()
    fallen_back = replace(subnet, engine="minhop", levels={}, later=())

    def answer(query: object) -> tuple[object, list[int]]:
        if isinstance(query, GetPathLevels):
            return PathLevels(subnet.levels), []
        return BorrowedNic(1, fallen_back), [socket.socket().detach()]

    lab: Any = SimpleNamespace(ask=answer)
    sockets = borrow_nics(lab, topology)
    for opened, _ in sockets.hosts.values():
        opened.close()
    assert sockets.levels() == subnet.levels
