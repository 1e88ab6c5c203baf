"""Queue pairs 1 of NICs on both fabrics: datagrams arrive, and tshark sees them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from emu._core import ffi, lib
from emu.rdma import Context, Lab
from emu.verbs.cm.gsi import GeneralServices
from emu.verbs.cm.messages import build
from tests.support.cm_pairs import MESSAGES, REQ
from tests.support.qp_pairs import lab_of
from tests.support.tshark import MALFORMED, number, tshark

FABRICS = pytest.mark.parametrize("fabric", ["roce", "ib"])


def contexts(lab: Lab) -> list[Context]:
    return [lab.host(name).rdma for name in ("h1", "h2")]


def run(context: Context, ns: int = 100_000) -> None:
    clock = context.clock
    lib.fabric_run_to_event(clock.fabric.core, clock.now_ps + ns * 1000, ffi.new("bool *"))


@FABRICS
def test_datagram_arrives_with_its_sender(fabric: str, tmp_path: Path) -> None:
    with lab_of(tmp_path, fabric) as lab:
        one, other = contexts(lab)
        services = GeneralServices([one, other])
        packet = build(REQ, 7)
        services.send(0, other.address, 0, packet)
        run(one)
        assert list(services.received()) == [(1, one.address, packet)]
        assert list(services.received()) == []


@FABRICS
def test_many_datagrams_arrive_in_order(fabric: str, tmp_path: Path) -> None:
    """More than may be outstanding at a time: the rest waits, and room is used again."""
    with lab_of(tmp_path, fabric) as lab:
        one, other = contexts(lab)
        services = GeneralServices([one, other])
        packets = [build(REQ, number) for number in range(1000)]
        for packet in packets:
            services.send(0, other.address, 0, packet)
        received: list[bytes] = []
        for _ in range(1000):
            run(one, ns=1000)
            received += [packet for _, _, packet in services.received()]
        assert received == packets


def test_queue_pair_1_takes_no_number_of_programs(tmp_path: Path) -> None:
    from emu.rdma import QPType
    from tests.support.qp_pairs import players

    with lab_of(tmp_path) as lab:
        GeneralServices(contexts(lab))
        client, _ = players(lab, QPType.RC)
        assert client.qp.qp_num == lib.FIRST_QPN


@FABRICS
@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark: apt-get install tshark")
def test_tshark_reads_captured_messages(fabric: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with lab_of(tmp_path, fabric, "capture=[s1:h1]", out=out) as lab:
        one, other = contexts(lab)
        services = GeneralServices([one, other])
        for message in MESSAGES.values():
            services.send(0, other.address, 0, build(message, 1))
        run(one)
        assert len(list(services.received())) == len(MESSAGES)
    (capture,) = out.glob("s1-h1.*")
    rows = [
        row
        for row in tshark(
            capture,
            ["infiniband.bth.destqp", "infiniband.deth.q_key", "infiniband.mad.attributeid"],
        )
        if row["infiniband.bth.destqp"]
    ]
    assert [number(row["infiniband.bth.destqp"]) for row in rows] == [1] * len(MESSAGES)
    assert {number(row["infiniband.deth.q_key"]) for row in rows} == {0x80010000}
    attributes = [number(row["infiniband.mad.attributeid"]) for row in rows]
    assert attributes == [message.attribute for message in MESSAGES.values()]
    assert {row[MALFORMED] for row in rows} == {""}
