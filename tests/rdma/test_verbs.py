"""Verbs on the virtual clock: every operation on both fabrics, and its completion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emu.rdma import (
    AH,
    NOTHING,
    WC,
    Lab,
    QPAttr,
    QPState,
    QPType,
    RecvWR,
    SendWR,
    WCFlag,
    WCOpcode,
    WCStatus,
    WROpcode,
)
from tests.support.qp_pairs import ALL, BYTES, QKEY, Player, lab_of, players

LENGTH = 10_001
GRH_BYTES = 40


@pytest.fixture(scope="module", params=["roce", "ib"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One lab for all tests of the module: each test has its own queue pairs."""
    with lab_of(tmp_path_factory.mktemp("verbs"), request.param) as lab:
        yield lab


async def _one_way(client: Player, server: Player, wr: SendWR) -> tuple[WCOpcode, WCOpcode | None]:
    """Posts a receive at the server, and the message; returns the opcode of the completion at each
    end."""
    server.qp.post_recv(RecvWR(server.mr.sge(), wr_id=7))
    client.qp.post_send(wr)
    ended = (await client.cq.wait()).succeeded()
    received = server.cq.poll()
    return ended.opcode, received[0].succeeded().opcode if received else None


@pytest.mark.parametrize("qp_type", [QPType.RC, QPType.UC])
@pytest.mark.parametrize(
    ("opcode", "ends"),
    [
        (WROpcode.SEND, (WCOpcode.SEND, WCOpcode.RECV)),
        (WROpcode.SEND_WITH_IMM, (WCOpcode.SEND, WCOpcode.RECV)),
        (WROpcode.RDMA_WRITE, (WCOpcode.RDMA_WRITE, None)),
        (WROpcode.RDMA_WRITE_WITH_IMM, (WCOpcode.RDMA_WRITE, WCOpcode.RECV_RDMA_WITH_IMM)),
    ],
)
def test_bytes_arrive_with_completions_at_both_ends(
    lab: Lab, qp_type: QPType, opcode: WROpcode, ends: tuple[WCOpcode, WCOpcode | None]
) -> None:
    """All bytes of the message and no others; each completion has its opcode."""
    client, server = players(lab, qp_type)
    wr = SendWR(
        opcode,
        client.mr.sge(1, LENGTH),
        remote_addr=server.mr.addr,
        rkey=server.mr.rkey,
        imm_data=9,
    )

    async def program() -> None:
        seen = await _one_way(client, server, wr)
        await lab.sleep(10_000)  # an unreliable message completes when it has left
        late = server.cq.poll()
        assert seen[0] is ends[0]
        assert (late[0].opcode if late else seen[1]) is ends[1]

    lab.run(program())
    assert (server.memory[:LENGTH] == client.memory[1 : 1 + LENGTH]).all()
    assert not server.memory[LENGTH:].any()


def test_read_fetches_and_atomic_changes(lab: Lab) -> None:
    """READ, FETCH_ADD and CMP_SWAP, compared with numpy's arithmetic."""
    client, server = players(lab)
    server.memory[:] = np.arange(BYTES) % 199
    word = server.memory[:8].view(np.uint64)
    before = int(word[0])

    async def do(opcode: WROpcode, length: int, compare_add: int = 0, swap: int = 0) -> None:
        to = client.mr.sge(0, length)
        wr = SendWR(opcode, to, 0, server.mr.addr, server.mr.rkey, 0, 0, compare_add, swap)
        client.qp.post_send(wr)
        (await client.cq.wait()).succeeded()

    async def program() -> None:
        await do(WROpcode.RDMA_READ, LENGTH)
        assert (client.memory[:LENGTH] == server.memory[:LENGTH]).all()
        await do(WROpcode.ATOMIC_FETCH_AND_ADD, 8, 1000)
        assert int(client.memory[:8].view(np.uint64)[0]) == before
        assert int(word[0]) == before + 1000
        await do(WROpcode.ATOMIC_CMP_AND_SWP, 8, before, 5)
        assert int(word[0]) == before + 1000, "the comparison fails"
        await do(WROpcode.ATOMIC_CMP_AND_SWP, 8, before + 1000, 5)
        assert int(word[0]) == 5

    lab.run(program())


def test_completion_has_immediate_data_or_invalidated_key(lab: Lab) -> None:
    """Afterwards the invalidated key grants no access."""
    client, server = players(lab)
    extra = server.pd.reg_mr(np.zeros(8, np.uint8), ALL)

    async def program() -> None:
        for _ in range(2):
            server.qp.post_recv(RecvWR(server.mr.sge()))
        client.qp.post_send(SendWR(WROpcode.SEND_WITH_IMM, imm_data=0xCAFEBABE))
        client.qp.post_send(SendWR(WROpcode.SEND_WITH_INV, invalidate_rkey=extra.rkey))
        await client.cq.wait()
        await client.cq.wait()
        immediate, invalidated = server.cq.poll(2)
        assert (immediate.imm_data, immediate.wc_flags) == (0xCAFEBABE, WCFlag.WITH_IMM)
        assert (invalidated.imm_data, invalidated.wc_flags) == (extra.rkey, WCFlag.WITH_INV)
        client.qp.post_send(
            SendWR(WROpcode.RDMA_WRITE, client.mr.sge(0, 8), 0, extra.addr, extra.rkey)
        )
        assert (await client.cq.wait()).status is WCStatus.REM_ACCESS_ERR

    lab.run(program())


def test_datagram_completion_names_its_sender(lab: Lab) -> None:
    """The completion has the number of the sender's queue pair. The first 40 bytes are for the GRH.

    Packets within an InfiniBand subnet have none.
    """
    client, server = players(lab, QPType.UD)
    to = AH(server.context.address)
    flags = WCFlag.GRH if lab.spec.fabric_kind.is_ethernet else WCFlag(0)

    async def program() -> None:
        server.qp.post_recv(RecvWR(server.mr.sge()))
        wr = SendWR(sge=client.mr.sge(0, 100), ah=to, remote_qpn=server.qp.qp_num, remote_qkey=QKEY)
        client.qp.post_send(wr)
        received = (await server.cq.wait()).succeeded()
        assert received.byte_len == GRH_BYTES + 100
        assert received.src_qp == client.qp.qp_num
        assert received.wc_flags == flags

    lab.run(program())
    assert (server.memory[GRH_BYTES : GRH_BYTES + 100] == client.memory[:100]).all()


def test_shared_receive_queue_serves_clients_in_order(lab: Lab) -> None:
    """Two clients' messages use its receives in the order of arrival."""
    server = lab.host("h2").rdma
    pd, cq = server.alloc_pd(), server.create_cq(8)
    memory = np.zeros((2, 64), np.uint8)
    region = pd.reg_mr(memory, ALL)
    srq = pd.create_srq(2)
    clients = [Player(lab.host("h1").rdma, QPType.RC) for _ in range(2)]
    ends = [pd.create_qp(QPType.RC, cq, srq=srq) for _ in clients]
    for client, end in zip(clients, ends, strict=True):
        client.qp.connect(end.end)
        end.connect(client.qp.end)

    async def program() -> list[int]:
        for row in range(2):
            srq.post_recv(RecvWR(region.sge(64 * row, 64), wr_id=row))
        for number in (1, 0):
            clients[number].memory[:] = number + 1
            clients[number].qp.post_send(SendWR(sge=clients[number].mr.sge(0, 64)))
            await clients[number].cq.wait()
        return [wc.qp_num for wc in cq.poll(2)]

    assert lab.run(program()) == [ends[1].qp_num, ends[0].qp_num]
    assert (memory[0] == 2).all()
    assert (memory[1] == 1).all()


def test_key_is_invalid_in_another_protection_domain(lab: Lab) -> None:
    """The far end refuses it, like a key that does not exist."""
    client, server = players(lab)
    stranger = server.context.alloc_pd().reg_mr(np.zeros(64, np.uint8), ALL)

    async def program() -> WCStatus:
        wr = SendWR(WROpcode.RDMA_WRITE, client.mr.sge(0, 64), 0, stranger.addr, stranger.rkey)
        client.qp.post_send(wr)
        return (await client.cq.wait()).status

    assert lab.run(program()) is WCStatus.REM_ACCESS_ERR
    assert not stranger.array.any()
    assert client.qp.qp_state is QPState.ERR


def test_failed_queue_pair_flushes_and_can_restart(lab: Lab) -> None:
    """After RESET the queue pair is as new."""
    client, server = players(lab)

    async def program() -> None:
        server.qp.post_recv(RecvWR(server.mr.sge(), wr_id=1))
        server.qp.modify(QPState.ERR)
        server.qp.post_recv(RecvWR(server.mr.sge(), wr_id=2))
        flushed = server.cq.poll(8)
        assert [(wc.wr_id, wc.status) for wc in flushed] == [
            (1, WCStatus.WR_FLUSH_ERR),
            (2, WCStatus.WR_FLUSH_ERR),
        ]
        for end, other in ((client, server), (server, client)):
            end.qp.modify(QPState.RESET)
            end.qp.connect(other.qp.end)
        server.qp.post_recv(RecvWR(server.mr.sge()))
        client.qp.post_send(SendWR(sge=client.mr.sge(0, 10)))
        (await client.cq.wait()).succeeded()

    lab.run(program())


def test_reset_discards_posted_and_completed_work(lab: Lab) -> None:
    """Only that of this queue pair; its queues have room again."""
    client, server = players(lab, max_send_wr=2, max_recv_wr=1)
    other = client.pd.create_qp(QPType.RC, client.cq)
    write = SendWR(WROpcode.RDMA_WRITE, NOTHING, 1, server.mr.addr, server.mr.rkey)
    flushed = client.context.counters["req_cqe_flush_error"]

    async def program() -> None:
        client.qp.post_send(write)
        await lab.sleep(10_000)  # completed, but not polled
        other.modify(QPState.ERR)
        other.post_send(SendWR(wr_id=2))
        for _ in range(2):
            client.qp.post_send(SendWR(sge=client.mr.sge()))
        client.qp.post_recv(RecvWR(client.mr.sge()))
        for end in (client, server):
            end.qp.modify(QPState.RESET)
        assert [wc.wr_id for wc in client.cq.poll(8)] == [2]
        for end, far in ((client, server), (server, client)):
            end.qp.connect(far.qp.end)
        client.qp.post_recv(RecvWR(client.mr.sge()))
        for _ in range(2):
            client.qp.post_send(write)
            assert (await client.cq.wait()).succeeded().wr_id == 1
        await lab.sleep(100_000)
        assert client.cq.poll(8) == []

    lab.run(program())
    assert client.context.counters["req_cqe_flush_error"] == flushed + 1


def test_reads_stay_within_the_negotiated_limit(lab: Lab) -> None:
    """The far end refuses reads beyond its limit; SQD allows to correct the limit."""
    reads, length = 60, 4000

    def agree(most: int, answered: int) -> tuple[Player, Player]:
        client, server = (Player(lab.host(name).rdma, QPType.RC) for name in ("h1", "h2"))
        for end, far in ((client, server), (server, client)):
            to = far.qp.end
            end.qp.to_init()
            end.qp.to_rtr(
                QPAttr(
                    dest_qp_num=to.qp_num,
                    rq_psn=to.psn,
                    dest_address=to.address,
                    max_dest_rd_atomic=answered,
                )
            )
            end.qp.to_rts(QPAttr(max_rd_atomic=most))
        return client, server

    async def read(client: Player, server: Player) -> list[WCStatus]:
        for number in range(reads):
            sge = client.mr.sge(number * 200, length)
            client.qp.post_send(
                SendWR(WROpcode.RDMA_READ, sge, number, server.mr.addr, server.mr.rkey)
            )
        return [(await client.cq.wait()).status for _ in range(reads)]

    assert set(lab.run(read(*agree(16, 16)))) == {WCStatus.SUCCESS}
    assert set(lab.run(read(*agree(3, 3)))) == {WCStatus.SUCCESS}
    done = lab.run(read(*agree(16, 3)))
    assert done[:3] == [WCStatus.SUCCESS] * 3
    first_wrong = done.index(WCStatus.REM_INV_REQ_ERR)
    assert set(done[:first_wrong]) == {WCStatus.SUCCESS}
    assert set(done[first_wrong + 1 :]) == {WCStatus.WR_FLUSH_ERR}
    client, server = agree(16, 3)
    server.qp.modify(QPState.SQD)
    server.qp.modify(QPState.SQD, QPAttr(max_dest_rd_atomic=16))
    server.qp.to_rts(QPAttr(min_rnr_timer=3))
    server.qp.to_rts(QPAttr(min_rnr_timer=4))
    assert set(lab.run(read(client, server))) == {WCStatus.SUCCESS}


def test_timeout_set_in_sqd_takes_effect(lab: Lab) -> None:
    """4.096 us * 2^timeout, twice because of one retry."""
    client, server = players(lab)
    server.qp.modify(QPState.RESET)  # answers nothing
    client.qp.modify(QPState.SQD)
    client.qp.modify(QPState.SQD, QPAttr(timeout=4, retry_cnt=1))
    client.qp.to_rts()

    async def program() -> float:
        posted_ns = lab.now_ns
        client.qp.post_send(SendWR(WROpcode.RDMA_WRITE))
        ended = await client.cq.wait()
        assert ended.status is WCStatus.RETRY_EXC_ERR
        return ended.at_ns - posted_ns

    assert lab.run(program()) == pytest.approx(2 * 4096 * 2**4, abs=2000)


def test_regions_can_be_registered_any_number_of_times(lab: Lab) -> None:
    """As many as the NIC has room for at a time, and old keys grant no access."""
    context = lab.host("h1").rdma
    pd, array = context.alloc_pd(), np.zeros(8, np.uint8)
    keys = set()
    for _ in range(2 * context.max_mr):
        region = pd.reg_mr(array, ALL)
        keys.add(region.rkey)
        region.dereg()
    assert len(keys) == 2 * context.max_mr
    client, server = players(lab)

    async def program() -> WCStatus:
        server.mr.dereg()
        for _ in range(2 * context.max_mr):
            server.pd.reg_mr(server.memory, ALL, iova=server.mr.addr).dereg()
        again = server.pd.reg_mr(server.memory, ALL, iova=server.mr.addr)
        assert again.rkey != server.mr.rkey
        wr = SendWR(WROpcode.RDMA_WRITE, client.mr.sge(0, 8), 0, server.mr.addr, server.mr.rkey)
        client.qp.post_send(wr)
        return (await client.cq.wait()).status

    assert lab.run(program()) is WCStatus.REM_ACCESS_ERR


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("asked_ns", "passed_ns"), [(0.4, 1), (1.5, 2), (3, 3), (0, 0), (-1, 0)])
def test_sleep_ends_after_whole_nanoseconds(lab: Lab, asked_ns: float, passed_ns: int) -> None:
    before = lab.now_ns
    lab.run(lab.sleep(asked_ns))
    assert lab.now_ns - before == passed_ns


def test_region_invalidated_by_a_send_deregisters_once(lab: Lab) -> None:
    """And no other region that took its slot meanwhile."""
    client, server = players(lab)
    extra = server.pd.reg_mr(np.zeros(8, np.uint8), ALL)
    server.qp.post_recv(RecvWR())
    client.qp.post_send(SendWR(WROpcode.SEND_WITH_INV, invalidate_rkey=extra.rkey))
    lab.run(client.cq.wait()).succeeded()
    extra.dereg()
    assert extra not in server.pd.regions


def test_deregistered_memory_is_not_touched(lab: Lab) -> None:
    """Neither before the first packet nor in the middle of a message, at either end."""

    def read(client: Player, server: Player) -> SendWR:
        return SendWR(WROpcode.RDMA_READ, client.mr.sge(), 0, server.mr.addr, server.mr.rkey)

    def write(client: Player, server: Player) -> SendWR:
        return SendWR(WROpcode.RDMA_WRITE, client.mr.sge(), 0, server.mr.addr, server.mr.rkey)

    async def ends(make: Callable[[Player, Player], SendWR], delay_ns: int, local: bool) -> WC:
        client, server = players(lab)
        server.memory[:] = 255
        client.qp.post_send(make(client, server))
        await lab.sleep(delay_ns)
        (client if local else server).mr.dereg()
        seen = client.memory.copy(), server.memory.copy()
        ended = await client.cq.wait()
        await lab.sleep(10_000)
        if make is write and not local:
            assert (server.memory == seen[1]).all()
        if make is read and local:
            assert (client.memory == seen[0]).all()
        return ended

    for make, midst_ns in ((read, (3_500, 2_000)), (write, (1_000, 2_500))):
        for local, status in ((True, WCStatus.LOC_PROT_ERR), (False, WCStatus.REM_ACCESS_ERR)):
            for delay_ns in (0, midst_ns[not local]):
                assert lab.run(ends(make, delay_ns, local)).status is status


@pytest.mark.parametrize("qp_type", list(QPType))
def test_inline_data_is_copied_when_posted(lab: Lab, qp_type: QPType) -> None:
    """Without registered memory; each message has the bytes at the time of its posting."""
    client, server = players(lab, qp_type, max_inline_data=512)
    lead = GRH_BYTES if qp_type is QPType.UD else 0
    to = AH(server.context.address) if lead else None
    array = np.zeros(64, np.uint64)

    async def program() -> None:
        for number in range(4):
            server.qp.post_recv(RecvWR(server.mr.sge(number * 1000, 1000)))
            array[:] = number + 1
            wr = SendWR(inline=array, ah=to, remote_qpn=server.qp.qp_num, remote_qkey=QKEY)
            client.qp.post_send(wr)
            array[:] = 255
        for _ in range(4):
            assert (await client.cq.wait()).succeeded().byte_len == 512
            assert (await server.cq.wait()).succeeded().byte_len == lead + 512

    lab.run(program())
    for number in range(4):
        came = server.memory[number * 1000 + lead :][:512].view(np.uint64)
        assert (came == number + 1).all()


def test_retransmitted_inline_data_is_unchanged(lab: Lab) -> None:
    """The far end has no receive at first; when it has one, the program's array has changed."""
    client, server = players(lab, max_inline_data=8)
    array = np.full(8, 9, np.uint8)

    async def program() -> None:
        client.qp.post_send(SendWR(inline=array))
        array[:] = 1
        await lab.sleep(5_000)
        server.qp.post_recv(RecvWR(server.mr.sge(0, 8)))
        (await client.cq.wait()).succeeded()

    lab.run(program())
    assert (server.memory[:8] == 9).all()


@pytest.mark.parametrize("kind", ["gpudirect", "host-staged"])
def test_inline_data_is_not_fetched_from_memory(tmp_path: Path, kind: str) -> None:
    """It saves the time of a memory read, and that of the copy."""
    with lab_of(tmp_path, "roce", f"hosts.path={{kind: {kind}}}") as lab:
        client, server = players(lab, max_inline_data=256)
        there: dict[str, Any] = {"remote_addr": server.mr.addr, "rkey": server.mr.rkey}

        async def lasts_ns(wr: SendWR) -> float:
            posted_ns = lab.now_ns
            client.qp.post_send(wr)
            return (await client.cq.wait()).succeeded().at_ns - posted_ns

        async def saved_ns() -> float:
            fetched = await lasts_ns(SendWR(WROpcode.RDMA_WRITE, client.mr.sge(0, 256), **there))
            return fetched - await lasts_ns(SendWR(WROpcode.RDMA_WRITE, inline=bytes(256), **there))

        path = lab.spec.host("h1").path
        assert path is not None
        copy_ns = path.copy_latency_ps / 1000 + 256 * 8e9 / path.copy_rate_bps
        expected_ns = path.read_ps / 1000 + (copy_ns if path.is_staged else 0)
        assert lab.run(saved_ns()) == pytest.approx(expected_ns, abs=2)


def test_unsignaled_sends_make_no_completion(lab: Lab) -> None:
    """The last one's completion covers those before it."""
    client, server = players(lab, max_send_wr=4)

    async def program() -> list[int]:
        for number in range(12):
            wr = SendWR(
                WROpcode.RDMA_WRITE,
                NOTHING,
                number,
                server.mr.addr,
                server.mr.rkey,
                signaled=number % 4 == 3,
            )
            client.qp.post_send(wr)
            if wr.signaled:
                assert (await client.cq.wait()).wr_id == number
        return [wc.wr_id for wc in client.cq.poll(8)]

    assert lab.run(program()) == []


def test_wait_ends_with_a_timeout_error(lab: Lab) -> None:
    """At the requested emulated time."""
    client, _ = players(lab)
    began = lab.now_ns

    async def program() -> None:
        with pytest.raises(TimeoutError, match=r"^h1: nothing completed within 5000 ns"):
            await client.cq.wait(timeout_ns=5000)

    lab.run(program())
    assert lab.now_ns == began + 5000


def test_same_program_leaves_the_same_capture(tmp_path: Path) -> None:
    """Keys, addresses and PSNs follow from the spec's seed."""

    def captured(folder: str) -> bytes:
        out = tmp_path / folder
        with lab_of(tmp_path, "roce", "capture=[s1:h1]", out=out) as lab:
            client, server = players(lab)
            target: dict[str, Any] = {"remote_addr": server.mr.addr, "rkey": server.mr.rkey}

            async def program() -> None:
                client.qp.post_send(SendWR(WROpcode.RDMA_READ, client.mr.sge(), **target))
                (await client.cq.wait()).succeeded()

            lab.run(program())
        (path,) = out.iterdir()
        return path.read_bytes()

    assert captured("one") == captured("two")
    assert len(captured("one")) > BYTES
