"""Our NIC and Linux' soft RoCE (rdma_rxe), with Debian's unmodified programs on it.

first namespace            namespace `between`   namespace `outside`
ibv_rc_pingpong, pyverbs                         tests.vm.ours
rxe0 on v0 ════════veth═══ c0 ══bridge══ c1 ═════ v1: our NIC
   └ dumpcap               └ tc: loses frames

tc drops frames in the middle of the path: if it dropped them at rxe's own interface, rxe would
retransmit them at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.vm.games import GAMES, MEMORY_BYTES, ONE_SIDED, Pingpong
from tests.vm.machine import ROOT, Machine

OURS, RXE = "10.9.0.2", "10.9.0.1"
CABLE = f"""\
set -e
ip netns add between
ip netns add outside
ip link add v0 mtu 4200 type veth peer name c0 mtu 4200 netns between
ip -n outside link add v1 mtu 4200 type veth peer name c1 mtu 4200 netns between
ip -n between link add bridge type bridge
for port in c0 c1; do
    ip -n between link set $port master bridge
    ip -n between link set $port up
    tc -n between qdisc add dev $port clsact
done
ip -n between link set bridge up
ip address add {RXE}/24 dev v0
ip -n outside address add {OURS}/24 dev v1
ip link set v0 up
ip -n outside link set v1 up
rdma link add rxe0 type rxe netdev v0
"""
LOST_AT = {"from rxe": "c0", "to rxe": "c1"}
LOSS = "protocol ip flower ip_proto udp dst_port 4791 action pass random determ drop 17"

pytestmark = pytest.mark.timeout(2400)

Results = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def capture(machine: Machine) -> Path:
    return machine.shared / "rxe.pcapng"


@pytest.fixture(scope="module")
def results(machine: Machine, capture: Path) -> Results:
    """The result of every exchange, by its name."""
    ours = f"{sys.executable} -m tests.vm.ours v1 {RXE}"
    script = [CABLE, f"dumpcap -q -i v0 -w {capture} & capture=$!"]
    script += [f"ip netns exec outside {ours} & ours=$!"]
    script += [_their_end(game, machine.shared / "theirs") for game in GAMES]
    script += [f"/usr/bin/python3 tests/vm/theirs.py {MEMORY_BYTES}", "wait $ours; kill $capture"]
    ended = machine.run("\n".join(script))
    assert ended.code == 0, f"{ended.out}\n{ended.err}"
    told = map(json.loads, ended.out.splitlines())
    return {one.pop("name"): one for one in told}


def _their_end(game: Pingpong, output: Path) -> str:
    program = f"ibv_{game.transport}_pingpong -d rxe0 -g 1"
    words = f"-s {game.size} -n {game.iterations} -m {game.mtu}"
    if game.we_call:
        lines = [f"{program} {words} >>{output}"]
    else:
        lines = [
            f"until {program} {words} {OURS} >>{output} 2>&1; do kill -0 $ours; sleep 0.5; done"
        ]
    if game.lost:
        where = f"dev {LOST_AT[game.lost]} ingress"
        lines.insert(0, f"tc -n between filter add {where} {LOSS}")
        lines.append(f"tc -n between filter del {where}")
    return "\n".join(lines)


@pytest.mark.parametrize("game", [game for game in GAMES if not game.lost], ids=lambda g: g.name)
def test_every_byte_comes_back_from_linux(results: Results, game: Pingpong) -> None:
    """Linux returns each message, and each of our messages is new."""
    turns = game.iterations if game.we_call else game.iterations - 1
    assert results[game.name]["returned"] == turns


@pytest.mark.parametrize("game", [game for game in GAMES if game.lost], ids=lambda g: g.name)
def test_both_ends_recover_lost_frames(results: Results, game: Pingpong) -> None:
    """The sender retransmits lost frames, and the receiver takes each once."""
    result = results[game.name]
    turns = game.iterations if game.we_call else game.iterations - 1
    assert result["returned"] == turns
    counters = result["counters"]
    noticed = "out_of_sequence" if game.lost == "from rxe" else "retransmitted_packets"
    assert counters[noticed] > 0


def test_one_sided_operations_reach_remote_memory(results: Results) -> None:
    """WRITE and READ work in both directions."""
    result = results[ONE_SIDED]
    assert result["we_read_what_we_wrote"]
    assert result["they_read_what_they_wrote"]
    assert result["it_lies_in_our_memory"]


def test_every_icrc_is_valid(results: Results, capture: Path) -> None:
    """rxe drops packets with a wrong ICRC, and `emu inspect` accepts those of both ends."""
    told = json.loads(_run(sys.executable, "-m", "emu.cli.main", "inspect", "--json", str(capture)))
    assert told["icrc"]["bad"] == 0, told
    assert told["icrc"]["ok"] > 500


def test_tshark_finds_nothing_malformed(results: Results, capture: Path) -> None:
    fields = ["-T", "fields", "-e", "_ws.malformed", "-e", "infiniband.bth.opcode"]
    rows = [line.split("\t") for line in _run("tshark", "-r", str(capture), *fields).splitlines()]
    assert not [row for row in rows if row[0]]
    opcodes = Counter(int(row[1]) for row in rows if len(row) > 1 and row[1])
    rc_send, rc_write, rc_read_response, uc_send = 0x00, 0x06, 0x0D, 0x20
    assert opcodes.keys() >= {rc_send, rc_write, rc_read_response, uc_send}


def _run(*command: str) -> str:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=100
    ).stdout
