"""TCP as a baseline: the hosts' kernels over the emulated cables, on both fabrics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emu.wire.inspect import inspect
from tests.support.background_lab import at_home, lab_up, status_of, watch_events
from tests.support.user import User

SPEC = """
name: streams
slowdown: 4000
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 3}
switches: {pfc: {priorities: [3]}}
hosts: {nic: {timeout: 6}}  # 262 us: what the last packet of a message waits for when it is lost
traffic:
  - {name: stream, pattern: pair, from: h1, to: h2, size: 1MB, stack: tcp}
  - {name: late, pattern: pair, from: h2, to: h3, size: 100KB, count: 2, stack: tcp, start: 20us}
  - {name: write, pattern: pair, from: h3, to: h2, size: 500KB}
capture: [leaf1:h2]
"""
LOSS = "[{at: 0us, loss: {cable: 'leaf1:h2', every: 60}}]"
FRAME_BYTES = {"roce": (4200 - 52, 4200 + 38), "ib": (2044 - 52, 2044 + 38)}
"""Bytes of TCP payload and on the wire per frame. TCP and IP headers with time stamps have 52.
Ethernet adds 14, FCS, preamble and gap. InfiniBand adds IPoIB 4, DETH 8, BTH 12, LRH 8, CRCs 6."""

pytestmark = [pytest.mark.usefixtures("lab_machine"), pytest.mark.timing]


def _run(user: User, *words: str) -> dict[str, Any]:
    path = user.home / "streams.emu.yml"
    path.write_text(SPEC)
    ended = user.run_emu("run", path, "--out", user.home / "out", "--json", *words)
    assert ended.code in (0, 5), ended.err
    summary: dict[str, Any] = json.loads(ended.out)
    return summary


@pytest.mark.parametrize(
    ("fabric", "faults"), [("roce", LOSS), ("ib", "[]")], ids=["roce with losses", "ib"]
)
def test_tcp_and_rdma_run_side_by_side(myself: User, fabric: str, faults: str) -> None:
    """All bytes arrive, at most at line rate.

    The kernel retransmits lost packets and counts them.
    """
    summary = _run(myself, "--set", f"fabric={fabric}", "--set", f"faults={faults}")
    flows = {flow["name"]: flow for flow in summary["flows"]}
    assert {name: (flow["op"], flow["completed"]) for name, flow in flows.items()} == {
        "stream": ("tcp", True),
        "late": ("tcp", True),
        "write": ("write", True),
    }
    payload, wire = FRAME_BYTES[fabric]
    stream = flows["stream"]
    assert stream["bytes"] == 1_000_000
    assert stream["end_ns"] - stream["start_ns"] > 1_000_000 / payload * wire * 8 / 100
    assert (flows["late"]["start_ns"], flows["late"]["bytes"]) == (20_000, 200_000)
    assert "its timers run in real time" in summary["notes"][-1]
    assert (stream["retransmitted_packets"] > 0) >= (fabric == "roce")
    if fabric == "ib":
        counted = summary["hosts"]["h2"]
        assert counted["ipoib_rx_packets"] > 1_000_000 / 1992
        assert counted["ipoib_rx_dropped"] == counted["ipoib_tx_dropped"] == 0
        found = inspect(myself.home / "out" / summary["captures"]["leaf1:h2"])
        assert found.icrc.to_json()["bad"] == 0 < found.opcodes["UD_SEND_ONLY"]


def test_traffic_start_also_starts_tcp(myself: User) -> None:
    me = at_home(myself)
    with lab_up(me, SPEC, "--set", "fabric=ib"):
        watching = watch_events(me)
        assert watching.stdout is not None
        assert me.run_emu("traffic", "start").code == 0
        done: set[object] = set()
        while len(done) < 3:
            event = json.loads(watching.stdout.readline())
            done |= {event["where"]} if event["event"] == "flow-completed" else set()
        watching.terminate()
        watching.communicate()
        (lab,) = status_of(me)
        assert {flow["op"] for flow in lab["traffic"]["flows"]} == {"tcp", "write"}
