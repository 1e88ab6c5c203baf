"""Wrong uses of verbs: each is an error that says why, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from emu.errors import LocalProtocolError, RemoteProtocolError, UsageError
from emu.rdma import (
    AH,
    NOTHING,
    SGE,
    AccessFlag,
    Lab,
    QPAttr,
    QPState,
    QPType,
    RecvWR,
    SendWR,
    WROpcode,
)
from tests.rdma.pairs import BYTES, Player, lab_of, players


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_of(tmp_path_factory.mktemp("misuse")) as lab:
        yield lab


@dataclass(frozen=True)
class Misuse:
    """Something that an end must not do, and the reason that it is told."""

    why: str
    do: Callable[[Player], object]
    qp_type: QPType = QPType.RC


def _read_only() -> np.ndarray:
    array = np.zeros(8, np.uint8)
    array.flags.writeable = False
    return array


READ_ONLY_KEY = SGE(0x1000_0000_0000, 8, 0xBAD00)
CONNECTED = {
    "unregistered buffer": Misuse("reg_mr first", lambda end: end.pd.sge(np.zeros(8))),
    "beyond the region": Misuse("not all in a region", lambda end: end.mr.sge(BYTES - 4, 8)),
    "no such key": Misuse(
        "not in the memory of key 0xbad00",
        lambda end: end.qp.post_send(SendWR(sge=READ_ONLY_KEY)),
    ),
    "receive without a key": Misuse(
        "with LOCAL_WRITE", lambda end: end.qp.post_recv(RecvWR(READ_ONLY_KEY))
    ),
    "atomic of 4 bytes": Misuse(
        "an atomic 8",
        lambda end: end.qp.post_send(SendWR(WROpcode.ATOMIC_FETCH_AND_ADD, end.mr.sge(0, 4))),
    ),
    "READ by UC": Misuse(
        "UC has no RDMA_READ",
        lambda end: end.qp.post_send(SendWR(WROpcode.RDMA_READ, end.mr.sge(0, 8))),
        QPType.UC,
    ),
    "WRITE by UD": Misuse(
        "UD has no RDMA_WRITE",
        lambda end: end.qp.post_send(SendWR(WROpcode.RDMA_WRITE, end.mr.sge(0, 8), ah=AH(1))),
        QPType.UD,
    ),
    "datagram to nobody": Misuse(
        "with an ah", lambda end: end.qp.post_send(SendWR(sge=end.mr.sge(0, 8))), QPType.UD
    ),
    "address by RC": Misuse("with an ah", lambda end: end.qp.post_send(SendWR(ah=AH(1)))),
    "datagram over the MTU": Misuse(
        "holds one MTU",
        lambda end: end.qp.post_send(SendWR(sge=end.mr.sge(0, 4097), ah=AH(1))),
        QPType.UD,
    ),
    "backwards": Misuse("no way from RTS to RTR", lambda end: end.qp.to_rtr(QPAttr())),
    "new PSN at work": Misuse("not to be set in RTS", lambda end: end.qp.to_rts(QPAttr(sq_psn=1))),
    "rights without a use": Misuse(
        "add LOCAL_WRITE", lambda end: end.pd.reg_mr(np.zeros(8), AccessFlag.REMOTE_WRITE)
    ),
    "array with gaps": Misuse(
        "in C order", lambda end: end.pd.reg_mr(np.zeros((8, 8))[:, 1], AccessFlag.REMOTE_READ)
    ),
    "array that is read only": Misuse(
        "leave LOCAL_WRITE out", lambda end: end.pd.reg_mr(_read_only(), AccessFlag.LOCAL_WRITE)
    ),
    "queue without room": Misuse("ask for more", lambda end: end.context.create_cq(0)),
    "another domain's SRQ": Misuse(
        "another protection domain",
        lambda end: end.pd.create_qp(QPType.RC, end.cq, srq=end.context.alloc_pd().create_srq(1)),
    ),
}


@pytest.mark.parametrize("misuse", CONNECTED.values(), ids=CONNECTED)
def test_misuse_is_refused_and_the_next_message_goes_through(lab: Lab, misuse: Misuse) -> None:
    """No completion comes of it, the state is the same, and the queue pair works."""
    client, server = players(lab, misuse.qp_type)
    with pytest.raises(LocalProtocolError, match=misuse.why):
        misuse.do(client)
    assert client.qp.qp_state is QPState.RTS
    assert client.cq.poll() == []
    if misuse.qp_type is QPType.UD:
        return

    async def program() -> None:
        server.qp.post_recv(RecvWR(server.mr.sge()))
        client.qp.post_send(SendWR(sge=client.mr.sge(0, 100)))
        (await client.cq.wait()).succeeded()

    lab.run(program())


@pytest.mark.parametrize("state", [QPState.RESET, QPState.INIT, QPState.RTR])
def test_who_is_not_ready_does_not_send(lab: Lab, state: QPState) -> None:
    """It is told how to become ready."""
    end, other = (Player(lab.host(name).rdma, QPType.RC) for name in ("h1", "h2"))
    if state is not QPState.RESET:
        end.qp.to_init()
    if state is QPState.RTR:
        far = other.qp.end
        end.qp.to_rtr(QPAttr(dest_qp_num=far.qp_num, rq_psn=far.psn, dest_address=far.address))
    with pytest.raises(LocalProtocolError, match=f"is in {state.name} and sends from RTS on"):
        end.qp.post_send(SendWR())
    assert end.qp.qp_state is state


def test_rtr_names_what_it_needs(lab: Lab) -> None:
    """And stays where it is."""
    end = Player(lab.host("h1").rdma, QPType.RC)
    end.qp.to_init()
    with pytest.raises(LocalProtocolError, match="RTR needs rq_psn, dest_address"):
        end.qp.to_rtr(QPAttr(dest_qp_num=17))
    assert end.qp.qp_state is QPState.INIT


@pytest.mark.parametrize("wrong", [{"path_mtu": 1000}, {"timeout": 32}, {"retry_cnt": 8}])
def test_attributes_out_of_range_are_refused(lab: Lab, wrong: dict[str, int]) -> None:
    """None of those beside is taken either."""
    end = Player(lab.host("h1").rdma, QPType.RC)
    psn = end.qp.end.psn
    with pytest.raises(LocalProtocolError, match="out of range"):
        end.qp.to_init(QPAttr(sq_psn=psn ^ 1, **wrong))
    assert (end.qp.qp_state, end.qp.end.psn) == (QPState.RESET, psn)


def test_queues_that_are_full_take_no_more(lab: Lab) -> None:
    """What was posted before goes on."""
    client, server = players(lab, max_send_wr=2, max_recv_wr=1)
    server.qp.post_recv(RecvWR(NOTHING))
    with pytest.raises(LocalProtocolError, match="1 work requests are outstanding"):
        server.qp.post_recv(RecvWR(NOTHING))
    write = SendWR(WROpcode.RDMA_WRITE, NOTHING, 0, server.mr.addr, server.mr.rkey)
    client.qp.post_send(write)
    client.qp.post_send(write)
    with pytest.raises(LocalProtocolError, match="2 work requests are outstanding"):
        client.qp.post_send(write)

    async def program() -> None:
        for _ in range(2):
            (await client.cq.wait()).succeeded()

    lab.run(program())


def test_completions_that_found_no_room_are_missed(lab: Lab) -> None:
    """Those that did are there; then the loss is told, not hidden."""
    client, server = players(lab, cqe=1)
    for _ in range(2):
        client.qp.post_send(SendWR(WROpcode.RDMA_WRITE, NOTHING, 0, server.mr.addr, server.mr.rkey))

    async def program() -> None:
        await lab.sleep(50_000)
        assert len(client.cq.poll(8)) == 1
        with pytest.raises(LocalProtocolError, match="completion queue of 1 was full"):
            client.cq.poll()

    lab.run(program())


def test_a_region_ends_once(lab: Lab) -> None:
    """After that its key is worth nothing, and its bytes are not registered."""
    client, server = players(lab)
    server.mr.dereg()
    with pytest.raises(LocalProtocolError, match="reg_mr first"):
        server.pd.sge(server.memory)

    async def program() -> None:
        wr = SendWR(WROpcode.RDMA_WRITE, client.mr.sge(0, 8), 3, server.mr.addr, server.mr.rkey)
        client.qp.post_send(wr)
        with pytest.raises(RemoteProtocolError, match=r"wr_id 3\) ended with REM_ACCESS_ERR"):
            (await client.cq.wait()).succeeded()

    lab.run(program())
    assert not server.memory.any()


def test_a_host_that_is_not_there(lab: Lab) -> None:
    """Those there are are told."""
    with pytest.raises(UsageError, match="there is h1, h2"):
        lab.host("h3")
