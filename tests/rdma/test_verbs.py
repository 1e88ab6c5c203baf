"""Verbs on the virtual clock: every operation, on both fabrics, and what each of them tells."""

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
    """One lab for all tests here: each has queue pairs of its own."""
    with lab_of(tmp_path_factory.mktemp("verbs"), request.param) as lab:
        yield lab


async def _one_way(client: Player, server: Player, wr: SendWR) -> tuple[WCOpcode, WCOpcode | None]:
    """Posts a receive at the server, and the message; what ended at either end."""
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
def test_bytes_go_to_the_other_end(
    lab: Lab, qp_type: QPType, opcode: WROpcode, ends: tuple[WCOpcode, WCOpcode | None]
) -> None:
    """All of them, none else, and both ends are told what it was."""
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
        await lab.sleep(10_000)  # an unreliable message is over when it has left
        late = server.cq.poll()
        assert seen[0] is ends[0]
        assert (late[0].opcode if late else seen[1]) is ends[1]

    lab.run(program())
    assert (server.memory[:LENGTH] == client.memory[1 : 1 + LENGTH]).all()
    assert not server.memory[LENGTH:].any()


def test_a_read_fetches_and_an_atomic_changes(lab: Lab) -> None:
    """READ, FETCH_ADD and CMP_SWAP against numpy's own arithmetic."""
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
        assert int(word[0]) == before + 1000, "what was compared is not there"
        await do(WROpcode.ATOMIC_CMP_AND_SWP, 8, before + 1000, 5)
        assert int(word[0]) == 5

    lab.run(program())


def test_immediate_data_and_invalidated_keys_are_told(lab: Lab) -> None:
    """And an invalidated key is worth nothing any more."""
    client, server = players(lab)
    extra = server.pd.reg_mr(np.zeros(8, np.uint8), ALL)

    async def program() -> None:
        for _ in range(2):
            server.qp.post_recv(RecvWR(server.mr.sge()))
        client.qp.post_send(SendWR(WROpcode.SEND_WITH_IMM, imm_data=0xCAFEBABE))
        client.qp.post_send(SendWR(WROpcode.SEND_WITH_INV, invalidate_rkey=extra.rkey))
        await client.cq.wait()
        await client.cq.wait()
        told, invalidated = server.cq.poll(2)
        assert (told.imm_data, told.wc_flags) == (0xCAFEBABE, WCFlag.WITH_IMM)
        assert (invalidated.imm_data, invalidated.wc_flags) == (extra.rkey, WCFlag.WITH_INV)
        client.qp.post_send(
            SendWR(WROpcode.RDMA_WRITE, client.mr.sge(0, 8), 0, extra.addr, extra.rkey)
        )
        assert (await client.cq.wait()).status is WCStatus.REM_ACCESS_ERR

    lab.run(program())


def test_a_datagram_says_whom_it_is_from(lab: Lab) -> None:
    """Its first 40 bytes are for the GRH, and its sender has a number."""
    client, server = players(lab, QPType.UD)
    to = AH(server.context.address)

    async def program() -> None:
        server.qp.post_recv(RecvWR(server.mr.sge()))
        wr = SendWR(sge=client.mr.sge(0, 100), ah=to, remote_qpn=server.qp.qp_num, remote_qkey=QKEY)
        client.qp.post_send(wr)
        received = (await server.cq.wait()).succeeded()
        assert received.byte_len == GRH_BYTES + 100
        assert received.src_qp == client.qp.qp_num
        assert received.wc_flags is WCFlag.GRH

    lab.run(program())
    assert (server.memory[GRH_BYTES : GRH_BYTES + 100] == client.memory[:100]).all()


def test_a_shared_queue_serves_whoever_comes(lab: Lab) -> None:
    """Two clients' messages take its receives in the order of their coming."""
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


def test_a_key_is_worth_nothing_outside_its_protection_domain(lab: Lab) -> None:
    """The far end refuses it, as if there were no such key."""
    client, server = players(lab)
    stranger = server.context.alloc_pd().reg_mr(np.zeros(64, np.uint8), ALL)

    async def program() -> WCStatus:
        wr = SendWR(WROpcode.RDMA_WRITE, client.mr.sge(0, 64), 0, stranger.addr, stranger.rkey)
        client.qp.post_send(wr)
        return (await client.cq.wait()).status

    assert lab.run(program()) is WCStatus.REM_ACCESS_ERR
    assert not stranger.array.any()
    assert client.qp.qp_state is QPState.ERR


def test_a_failed_queue_pair_flushes_and_can_begin_again(lab: Lab) -> None:
    """After RESET it is as new."""
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


def test_a_reset_forgets_what_was_posted_and_what_has_ended(lab: Lab) -> None:
    """Of this queue pair alone; its work requests have room again."""
    client, server = players(lab, max_send_wr=2, max_recv_wr=1)
    other = client.pd.create_qp(QPType.RC, client.cq)
    write = SendWR(WROpcode.RDMA_WRITE, NOTHING, 1, server.mr.addr, server.mr.rkey)
    flushed = client.context.counters["req_cqe_flush_error"]

    async def program() -> None:
        client.qp.post_send(write)
        await lab.sleep(10_000)  # it has ended, and nobody polls
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


def test_reads_may_be_outstanding_as_agreed_on(lab: Lab) -> None:
    """Beyond what the far end answers they are refused, not lost; with SQD it can be set right."""
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


def test_a_timeout_that_is_set_in_sqd_is_the_one_that_counts(lab: Lab) -> None:
    """4.096 us * 2^timeout, and once more for the one retry."""
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


def test_regions_may_come_and_go_any_number_of_times(lab: Lab) -> None:
    """As many as the NIC has room for are alive at once, and old keys open nothing."""
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


def test_a_region_whose_key_a_send_invalidated_is_deregistered_once(lab: Lab) -> None:
    """And no other that has its place meanwhile."""
    client, server = players(lab)
    extra = server.pd.reg_mr(np.zeros(8, np.uint8), ALL)
    server.qp.post_recv(RecvWR())
    client.qp.post_send(SendWR(WROpcode.SEND_WITH_INV, invalidate_rkey=extra.rkey))
    lab.run(client.cq.wait()).succeeded()
    extra.dereg()
    assert extra not in server.pd.regions


def test_memory_is_the_programs_own_from_dereg_on(lab: Lab) -> None:
    """Before the first packet, and in the midst of a message, at either end of it."""

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
def test_inline_data_is_the_programs_again_at_once(lab: Lab, qp_type: QPType) -> None:
    """It needs no registered memory; each message has the bytes of its posting."""
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


def test_inline_data_is_sent_again_as_it_was(lab: Lab) -> None:
    """The far end has no receive at first, and by the time it has the array is another."""
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
    """It saves the time from asking memory to its first byte, and that of the copy."""
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


def test_sends_without_a_signal_complete_in_silence(lab: Lab) -> None:
    """The last one's completion speaks for those before."""
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


def test_who_waits_in_vain_is_told(lab: Lab) -> None:
    """At the emulated time that was asked for."""
    client, _ = players(lab)
    began = lab.now_ns

    async def program() -> None:
        with pytest.raises(TimeoutError, match=r"^h1: nothing completed within 5000 ns"):
            await client.cq.wait(timeout_ns=5000)

    lab.run(program())
    assert lab.now_ns == began + 5000


def test_the_same_program_leaves_the_same_capture(tmp_path: Path) -> None:
    """Keys, addresses and PSNs are those of the spec's seed."""

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
