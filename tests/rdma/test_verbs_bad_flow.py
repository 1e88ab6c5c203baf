"""Wrong uses of verbs: each is an error that explains itself and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
from tests.support.qp_pairs import BYTES, Player, lab_of, players


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_of(tmp_path_factory.mktemp("misuse")) as lab:
        yield lab


@dataclass(frozen=True)
class Misuse:
    """An invalid action of a queue pair, and the expected error."""

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
    "datagram without a destination": Misuse(
        "with an ah", lambda end: end.qp.post_send(SendWR(sge=end.mr.sge(0, 8))), QPType.UD
    ),
    "address by RC": Misuse("with an ah", lambda end: end.qp.post_send(SendWR(ah=AH(1)))),
    "datagram over the MTU": Misuse(
        "holds one MTU",
        lambda end: end.qp.post_send(SendWR(sge=end.mr.sge(0, 4097), ah=AH(1))),
        QPType.UD,
    ),
    "backwards": Misuse("no way from RTS to RTR", lambda end: end.qp.to_rtr(QPAttr())),
    "new PSN at work": Misuse(
        "sq_psn cannot be set in the step from RTS to RTS, which takes min_rnr_timer",
        lambda end: end.qp.to_rts(QPAttr(sq_psn=1)),
    ),
    "attributes of a step before": Misuse(
        "dest_qp_num, rq_psn cannot be set in the step from RTS to RTS",
        lambda end: end.qp.to_rts(QPAttr(rq_psn=5, dest_qp_num=9, min_rnr_timer=1)),
    ),
    "attributes on the way to ERR": Misuse(
        "timeout cannot be set in the step from RTS to ERR, which takes no attributes",
        lambda end: end.qp.modify(QPState.ERR, QPAttr(timeout=1)),
    ),
    "retries by UC": Misuse(
        "min_rnr_timer cannot be set",
        lambda end: end.qp.to_rts(QPAttr(min_rnr_timer=1)),
        QPType.UC,
    ),
    "no such state": Misuse(
        "state=99 is no QPState: RESET, INIT",
        lambda end: end.qp.modify(99),  # type: ignore[arg-type]
    ),
    "no such type": Misuse(
        "qp_type=7 is no QPType: RC, UC, UD",
        lambda end: end.pd.create_qp(7, end.cq),  # type: ignore[arg-type]
    ),
    "no such opcode": Misuse(
        "opcode=99 is no WROpcode: SEND",
        lambda end: end.qp.post_send(SendWR(opcode=99)),  # type: ignore[arg-type]
    ),
    "rights without a use": Misuse(
        "add LOCAL_WRITE", lambda end: end.pd.reg_mr(np.zeros(8), AccessFlag.REMOTE_WRITE)
    ),
    "array with gaps": Misuse(
        "in C order", lambda end: end.pd.reg_mr(np.zeros((8, 8))[:, 1], AccessFlag.REMOTE_READ)
    ),
    "array that is read only": Misuse(
        "leave LOCAL_WRITE out", lambda end: end.pd.reg_mr(_read_only(), AccessFlag.LOCAL_WRITE)
    ),
    "array of objects": Misuse(
        "register an array of numbers",
        lambda end: end.pd.reg_mr(np.array([end, None]), AccessFlag.LOCAL_WRITE),
    ),
    "rights that there are not": Misuse(
        "access=.* is not a number from 0 to 15",
        lambda end: end.pd.reg_mr(np.zeros(8), AccessFlag(64)),
    ),
    "beyond the last address": Misuse(
        "8 bytes from iova=0xfffffffffffffffc on end beyond 64 bits",
        lambda end: end.pd.reg_mr(np.zeros(8, np.uint8), AccessFlag(0), iova=(1 << 64) - 4),
    ),
    "address below 0": Misuse(
        "iova=-1 is not", lambda end: end.pd.reg_mr(np.zeros(8), AccessFlag(0), iova=-1)
    ),
    "queue without room": Misuse(
        "cqe=0 is not a number from 1", lambda end: end.context.create_cq(0)
    ),
    "inline data without room": Misuse(
        "SEND with bytes inline: SEND and WRITE have them, and up to 0;",
        lambda end: end.qp.post_send(SendWR(inline=b"1")),
    ),
    "more inline data than a NIC takes": Misuse(
        "max_inline_data=1025 is not a number from 0 to 1024",
        lambda end: end.pd.create_qp(QPType.RC, end.cq, max_inline_data=1025),
    ),
    "bytes inline and in memory": Misuse(
        "not in both", lambda end: end.qp.post_send(SendWR(sge=end.mr.sge(), inline=b""))
    ),
    "no bytes inline": Misuse(
        "inline='text' is neither bytes nor",
        lambda end: end.qp.post_send(SendWR(inline="text")),  # type: ignore[arg-type]
    ),
    "queue too long": Misuse("cqe=10995", lambda end: end.context.create_cq(1 << 40)),
    "SRQ without room": Misuse("max_wr=-1 is not", lambda end: end.pd.create_srq(-1)),
    "no room to send": Misuse(
        "max_send_wr=-1 is not", lambda end: end.pd.create_qp(QPType.RC, end.cq, max_send_wr=-1)
    ),
    "no room to receive": Misuse(
        "max_recv_wr=-1 is not", lambda end: end.pd.create_qp(QPType.RC, end.cq, max_recv_wr=-1)
    ),
    "another domain's SRQ": Misuse(
        "another protection domain",
        lambda end: end.pd.create_qp(QPType.RC, end.cq, srq=end.context.alloc_pd().create_srq(1)),
    ),
}


def _with(name: str, value: Any) -> SendWR:
    return replace(SendWR(), **{name: value})


SGES = {
    "sge.addr": [SGE(-1, 0, 0), SGE(1 << 64, 0, 0)],
    "sge.length": [SGE(0, -1, 0), SGE(0, 1 << 32, 0)],
    "sge.lkey": [SGE(0, 0, -1), SGE(0, 0, 1 << 32)],
}
BITS = {
    "wr_id": 64, "remote_addr": 64, "compare_add": 64, "swap": 64, "imm_data": 32, "rkey": 32,
    "invalidate_rkey": 32, "remote_qpn": 24, "remote_qkey": 32,
}  # fmt: skip
SENT = [
    *((name, _with(name, value)) for name, bits in BITS.items() for value in (-1, 1 << bits)),
    *((name, SendWR(sge=sge)) for name, sges in SGES.items() for sge in sges),
    ("ah.address", SendWR(ah=AH(1 << 32))),
    ("imm_data", SendWR(imm_data=0.5)),  # type: ignore[arg-type]
]
RECEIVED = [
    *((name, RecvWR(sge)) for name, sges in SGES.items() for sge in sges),
    ("wr_id", RecvWR(wr_id=-1)),
    ("wr_id", RecvWR(wr_id=1 << 64)),
]


@pytest.mark.parametrize(("name", "wr"), [*SENT, *RECEIVED])
def test_out_of_range_number_in_a_work_request_is_refused(
    lab: Lab, name: str, wr: SendWR | RecvWR
) -> None:
    """By its name and value, for a shared queue too; valid requests still work afterwards."""
    client, server = players(lab)
    refused = pytest.raises(LocalProtocolError, match=rf"{name}=\S+ is not a number from 0 to")
    if isinstance(wr, SendWR):
        with refused:
            client.qp.post_send(wr)
        client.qp.post_send(SendWR(WROpcode.RDMA_WRITE, remote_addr=(1 << 64) - 1, wr_id=3))
        assert lab.run(client.cq.wait()).succeeded().wr_id == 3
        return
    with refused:
        server.qp.post_recv(wr)
    with pytest.raises(LocalProtocolError, match=rf"shared queue: {name}="):
        server.pd.create_srq(1).post_recv(wr)


STEPS = {
    QPState.RTR: {
        "dest_qp_num": [-1, 1 << 24],
        "rq_psn": [-1, 1 << 24],
        "dest_address": [-1, 1 << 32],
        "path_mtu": [-1, 0, 1000, 8192],
        "max_dest_rd_atomic": [-1, 17],
        "min_rnr_timer": [-1, 32],
    },
    QPState.RTS: {
        "sq_psn": [-1, 1 << 24],
        "timeout": [-1, 32, 300],
        "retry_cnt": [-1, 8],
        "rnr_retry": [-1, 8],
        "max_rd_atomic": [-1, 17, 32],
        "min_rnr_timer": [-1, 32],
    },
}


@pytest.mark.parametrize(
    ("state", "name", "value"),
    [
        (state, name, value)
        for state, attributes in STEPS.items()
        for name, values in attributes.items()
        for value in values
    ],
)
def test_attribute_out_of_range_is_refused(lab: Lab, state: QPState, name: str, value: int) -> None:
    """By its name, without effect of the other attributes; afterwards the same transition works."""
    end, far = (Player(lab.host(host).rdma, QPType.RC).qp for host in ("h1", "h2"))
    end.to_init()
    attr = QPAttr(dest_qp_num=far.qp_num, rq_psn=far.end.psn, dest_address=far.end.address)
    if state is QPState.RTS:
        end.to_rtr(attr)
        attr = QPAttr(sq_psn=end.end.psn ^ 1)
    before = end.qp_state, end.end
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(LocalProtocolError, match=rf"{name}={value} is not "):
        end.modify(state, replace(attr, **wrong))
    assert (end.qp_state, end.end) == before
    end.modify(state, attr)
    assert end.qp_state is state


def test_path_mtu_above_the_active_mtu_is_refused(tmp_path: Path) -> None:
    """Without effect of the other attributes; the active MTU itself is accepted."""
    with lab_of(tmp_path, "roce", "hosts.nodes.h1.nic.mtu=1024") as lab:
        end, far = (Player(lab.host(host).rdma, QPType.UC).qp for host in ("h1", "h2"))
        end.to_init()
        attr = QPAttr(dest_qp_num=far.qp_num, rq_psn=far.end.psn, dest_address=far.end.address)
        with pytest.raises(LocalProtocolError, match=r"path_mtu=2048: the active_mtu .* is 1024"):
            end.to_rtr(replace(attr, path_mtu=2048))
        assert end.qp_state is QPState.INIT
        end.to_rtr(replace(attr, path_mtu=1024))


@pytest.mark.parametrize("receives", [False, True])
def test_another_hosts_completion_queue_is_refused(lab: Lab, receives: bool) -> None:
    """As send queue or receive queue."""
    own, others = (Player(lab.host(name).rdma, QPType.RC) for name in ("h1", "h2"))
    queues = (own.cq, others.cq) if receives else (others.cq, own.cq)
    with pytest.raises(LocalProtocolError, match="the completion queue is h2's; make one here"):
        own.pd.create_qp(QPType.RC, *queues)


@pytest.mark.parametrize("value", [-1, 1 << 32])
def test_qkey_beyond_32_bits_is_refused(lab: Lab, value: int) -> None:
    """The queue pair remains in RESET."""
    end = Player(lab.host("h1").rdma, QPType.UD).qp
    with pytest.raises(LocalProtocolError, match=f"qkey={value} is not"):
        end.to_init(QPAttr(qkey=value))
    assert end.qp_state is QPState.RESET


def test_unknown_destination_address_is_refused(lab: Lab) -> None:
    """The error has the address."""
    end = Player(lab.host("h1").rdma, QPType.RC).qp
    end.to_init()
    with pytest.raises(LocalProtocolError, match="dest_address=0x1 is no host's"):
        end.to_rtr(QPAttr(dest_qp_num=17, rq_psn=1, dest_address=1))
    assert end.qp_state is QPState.INIT


@pytest.mark.parametrize("misuse", CONNECTED.values(), ids=CONNECTED)
def test_misuse_is_refused_without_side_effects(lab: Lab, misuse: Misuse) -> None:
    """No completion, the same state, and the next message arrives."""
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
def test_queue_pair_cannot_send_before_rts(lab: Lab, state: QPState) -> None:
    """The error says how to get there."""
    end, other = (Player(lab.host(name).rdma, QPType.RC) for name in ("h1", "h2"))
    if state is not QPState.RESET:
        end.qp.to_init()
    if state is QPState.RTR:
        far = other.qp.end
        end.qp.to_rtr(QPAttr(dest_qp_num=far.qp_num, rq_psn=far.psn, dest_address=far.address))
    with pytest.raises(LocalProtocolError, match=f"is in {state.name} and sends from RTS on"):
        end.qp.post_send(SendWR())
    assert end.qp.qp_state is state


def test_rtr_names_its_missing_attributes(lab: Lab) -> None:
    """The queue pair remains in INIT."""
    end = Player(lab.host("h1").rdma, QPType.RC)
    end.qp.to_init()
    with pytest.raises(LocalProtocolError, match="RTR needs rq_psn, dest_address"):
        end.qp.to_rtr(QPAttr(dest_qp_num=17))
    assert end.qp.qp_state is QPState.INIT


@pytest.mark.parametrize(
    ("opcode", "length"),
    [
        (WROpcode.SEND, 65),
        (WROpcode.RDMA_WRITE, 1024),
        (WROpcode.RDMA_READ, 8),
        (WROpcode.ATOMIC_CMP_AND_SWP, 8),
    ],
)
def test_unsuitable_inline_data_is_refused(lab: Lab, opcode: WROpcode, length: int) -> None:
    """Too many bytes, and operations that fetch bytes; a suitable message works afterwards."""
    client, server = players(lab, max_inline_data=64)
    with pytest.raises(LocalProtocolError, match=f"{opcode.name} with bytes inline: .* up to 64;"):
        client.qp.post_send(SendWR(opcode, inline=bytes(length)))
    there: dict[str, Any] = {"remote_addr": server.mr.addr, "rkey": server.mr.rkey}
    client.qp.post_send(SendWR(WROpcode.RDMA_WRITE, inline=bytes([7]) * 64, **there))
    lab.run(client.cq.wait()).succeeded()
    assert (server.memory[:65] == [7] * 64 + [0]).all()


def test_full_queues_take_no_more_requests(lab: Lab) -> None:
    """Requests that were posted before complete."""
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


def test_completion_queue_overflow_is_an_error(lab: Lab) -> None:
    """The completions that fit are there; then the loss is reported."""
    client, server = players(lab, cqe=1)
    for _ in range(2):
        client.qp.post_send(SendWR(WROpcode.RDMA_WRITE, NOTHING, 0, server.mr.addr, server.mr.rkey))

    async def program() -> None:
        await lab.sleep(50_000)
        assert len(client.cq.poll(8)) == 1
        with pytest.raises(LocalProtocolError, match="completion queue of 1 was full"):
            client.cq.poll()

    lab.run(program())


def test_region_is_deregistered_only_once(lab: Lab) -> None:
    """Afterwards its key grants no access, and its bytes are not registered."""
    client, server = players(lab)
    server.mr.dereg()
    with pytest.raises(LocalProtocolError, match="reg_mr first"):
        server.pd.sge(server.memory)
    with pytest.raises(LocalProtocolError, match="was deregistered before"):
        server.mr.dereg()

    async def program() -> None:
        wr = SendWR(WROpcode.RDMA_WRITE, client.mr.sge(0, 8), 3, server.mr.addr, server.mr.rkey)
        client.qp.post_send(wr)
        with pytest.raises(RemoteProtocolError, match=r"wr_id 3\) ended with REM_ACCESS_ERR"):
            (await client.cq.wait()).succeeded()

    lab.run(program())
    assert not server.memory.any()


def test_unknown_host_is_refused(lab: Lab) -> None:
    """The error lists the hosts."""
    with pytest.raises(UsageError, match="there is h1, h2"):
        lab.host("h3")
