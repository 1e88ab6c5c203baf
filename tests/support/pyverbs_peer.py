"""One end of messages by pyverbs, Debian's Python binding of libibverbs, as a program on a host:

    /usr/bin/python3 pyverbs_peer.py GID_INDEX          waits for the other end
    /usr/bin/python3 pyverbs_peer.py GID_INDEX SERVER   connects to it

Each transport prints a line when every byte arrived as it was sent. pyverbs calls much of
libibverbs that perftest does not: extended queries, polls and posts.
"""

from __future__ import annotations

import errno
import json
import socket
import sys
from typing import Any

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ, CQEX, CompChannel, CqInitAttrEx, PollCqAttr
from pyverbs.device import Context
from pyverbs.mr import MR, MW
from pyverbs.pd import PD, ParentDomain, ParentDomainInitAttr
from pyverbs.pyverbs_error import PyverbsError, PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr

PORT = 18600
QKEY, PSN, BYTES, GRH = 0x11111111, 100, 1024, 40
ACCESS = (
    e.IBV_ACCESS_LOCAL_WRITE
    | e.IBV_ACCESS_REMOTE_WRITE
    | e.IBV_ACCESS_REMOTE_READ
    | e.IBV_ACCESS_REMOTE_ATOMIC
)
CAP = {"max_send_wr": 16, "max_recv_wr": 16, "max_send_sge": 1, "max_recv_sge": 1}


def connection(server: str | None) -> socket.socket:
    if server:
        return socket.create_connection((server, PORT))
    with socket.create_server(("", PORT)) as listening:
        return listening.accept()[0]


def first_attributes() -> QPAttr:
    """Of the state INIT, which says what the other end may do."""
    attr = QPAttr(port_num=1)
    attr.qp_access_flags = ACCESS
    return attr


class Peer:
    """Both ends do the same, but for who sends."""

    def __init__(self, gid_index: int, server: str | None) -> None:
        self.sends = server is not None
        self.line = connection(server).makefile("rwb")
        self.context = Context(name="emu_0")
        self.domain = PD(self.context)
        self.memory = MR(self.domain, 4096, ACCESS)
        self.gid_index = gid_index

    def exchange(self, **own: object) -> dict[str, Any]:
        """What the other end says of itself. Also a barrier."""
        self.line.write(json.dumps(own).encode() + b"\n")
        self.line.flush()
        other: dict[str, Any] = json.loads(self.line.readline())
        return other

    # ---- the device ---------------------------------------------------------------

    def queries(self) -> str:
        device, extended = self.context.query_device(), self.context.query_device_ex()
        port = self.context.query_port(1)
        assert extended.orig_attr.max_qp == device.max_qp > 0
        assert port.state == e.IBV_PORT_ACTIVE
        assert self.context.query_gid_table(8)[0].gid_index == 0
        first = self.context.query_rt_values_ex(e.IBV_VALUES_MASK_RAW_CLOCK)[1]
        second = self.context.query_rt_values_ex(e.IBV_VALUES_MASK_RAW_CLOCK)[1]
        assert first <= second
        return f"pkey {self.context.query_pkey(1, 0):#x}"

    def refusals(self) -> str:
        """What the NIC does not have ends with EOPNOTSUPP."""
        attempts: dict[str, Any] = {
            "memory window": lambda: MW(self.domain, e.IBV_MW_TYPE_1),
            "parent domain": lambda: ParentDomain(self.context, ParentDomainInitAttr(self.domain)),
            "XRC domain": lambda: XRCD(self.context, XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD, 0, -1)),
        }
        for what, attempt in attempts.items():
            assert self.error_of(attempt) == errno.EOPNOTSUPP, what
        return f"{len(attempts)} refused"

    @staticmethod
    def error_of(attempt: Any) -> int:
        """The errno of a call; 0 if it succeeds."""
        try:
            attempt()
        except PyverbsRDMAError as error:
            return int(error.error_code)
        return 0

    # ---- queue pairs ----------------------------------------------------------------

    def address(self, port: dict[str, Any]) -> AHAttr:
        if self.gid_index < 0:
            return AHAttr(dlid=port["lid"], port_num=1)
        route = GlobalRoute(dgid=GID(port["gid"]), sgid_index=self.gid_index)
        return AHAttr(gr=route, is_global=1, port_num=1)

    def connect(self, qp: QP) -> dict[str, Any]:
        """Brings the queue pair to RTS. Returns the other end."""
        port = {
            "lid": self.context.query_port(1).lid,
            "gid": str(self.context.query_gid(1, max(self.gid_index, 0))),
        }
        other = self.exchange(qpn=qp.qp_num, rkey=self.memory.rkey, addr=self.memory.buf, **port)
        attr = QPAttr(port_num=1)
        attr.dest_qp_num, attr.rq_psn, attr.sq_psn = other["qpn"], PSN, PSN
        attr.path_mtu, attr.qkey, attr.qp_access_flags = e.IBV_MTU_1024, QKEY, ACCESS
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
        attr.ah_attr = self.address(other)
        qp.to_rts(attr)
        return other

    def entry(self, length: int = BYTES, offset: int = 0) -> SGE:
        return SGE(self.memory.buf + offset, length, self.memory.lkey)

    def fill(self, byte: str) -> None:
        self.memory.write(byte * 4096, 4096)

    def check(self, byte: str, offset: int = 0) -> None:
        got = self.memory.read(BYTES, offset)
        assert got == byte.encode() * BYTES, got[:32]

    @staticmethod
    def completed(cq: CQ) -> Any:
        while True:
            count, completions = cq.poll(1)
            if count:
                assert completions[0].status == e.IBV_WC_SUCCESS, completions[0]
                return completions[0]

    # ---- transports --------------------------------------------------------------------

    def connected(self, qp_type: int, *, shared: bool = False) -> str:
        """A message and its event; by RC, also a WRITE, a READ and an atomic."""
        channel = CompChannel(self.context)
        cq = CQ(self.context, 16, None, channel)
        cq.req_notify()
        srq = SRQ(self.domain, SrqInitAttr(SrqAttr(max_wr=16))) if shared else None
        qp = QP(
            self.domain,
            QPInitAttr(qp_type=qp_type, scq=cq, rcq=cq, cap=QPCap(**CAP), srq=srq),
            first_attributes(),
        )
        self.fill("s" if self.sends else "-")
        (srq or qp).post_recv(RecvWR(num_sge=1, sg=[self.entry()], wr_id=7))
        other = self.connect(qp)
        self.exchange()
        request = SendWR(
            num_sge=1, sg=[self.entry()], opcode=e.IBV_WR_SEND, send_flags=e.IBV_SEND_SIGNALED
        )
        if self.sends:
            qp.post_send(request)
        channel.get_cq_event(cq)
        cq.ack_events(1)
        completion = self.completed(cq)
        if not self.sends:
            assert completion.wr_id == 7
            self.check("s")
        self.exchange()
        if qp_type == e.IBV_QPT_RC:
            self.one_sided(qp, cq, other)
        for thing in (qp, srq, cq, channel):
            if thing:
                thing.close()
        return "all bytes"

    def one_sided(self, qp: QP, cq: CQ, other: dict[str, Any]) -> None:
        if self.sends:
            for byte, opcode in ("w", e.IBV_WR_RDMA_WRITE), ("w", e.IBV_WR_RDMA_READ):
                self.fill(byte if opcode == e.IBV_WR_RDMA_WRITE else "-")
                request = SendWR(
                    num_sge=1, sg=[self.entry()], opcode=opcode, send_flags=e.IBV_SEND_SIGNALED
                )
                request.set_wr_rdma(other["rkey"], other["addr"])
                qp.post_send(request)
                self.completed(cq)
                self.check(byte)
            add = SendWR(
                num_sge=1,
                sg=[self.entry(8, 2048)],
                opcode=e.IBV_WR_ATOMIC_FETCH_AND_ADD,
                send_flags=e.IBV_SEND_SIGNALED,
            )
            add.set_wr_atomic(other["rkey"], other["addr"] + 2048, 1, 0)
            qp.post_send(add)
            self.completed(cq)
            assert self.memory.read(8, 2048) == b"-" * 8
        self.exchange()
        if not self.sends:
            self.check("w")
            assert self.memory.read(8, 2048) == b"." + b"-" * 7
        self.exchange()

    def datagrams(self) -> str:
        cq = CQ(self.context, 16)
        qp = QP(self.domain, QPInitAttr(qp_type=e.IBV_QPT_UD, scq=cq, rcq=cq, cap=QPCap(**CAP)))
        self.fill("u" if self.sends else "-")
        other = self.connect(qp)
        qp.post_recv(RecvWR(num_sge=1, sg=[self.entry(GRH + BYTES)]))
        self.exchange()
        if self.sends:
            ah = AH(self.domain, attr=self.address(other))
            request = SendWR(
                num_sge=1, sg=[self.entry()], opcode=e.IBV_WR_SEND, send_flags=e.IBV_SEND_SIGNALED
            )
            request.set_wr_ud(ah, other["qpn"], QKEY)
            qp.post_send(request)
            self.completed(cq)
        else:
            assert self.completed(cq).byte_len == GRH + BYTES
            self.check("u", GRH)
        self.exchange()
        qp.close()
        cq.close()
        return "all bytes"

    def extended(self) -> str:
        """An extended queue pair, which sends by calls, and an extended completion queue with time
        stamps."""
        flags = e.IBV_WC_EX_WITH_BYTE_LEN | e.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
        cq = CQEX(self.context, CqInitAttrEx(cqe=16, wc_flags=flags))
        init = QPInitAttrEx(
            qp_type=e.IBV_QPT_RC,
            scq=cq,
            rcq=cq,
            cap=QPCap(**CAP),
            pd=self.domain,
            comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
            send_ops_flags=e.IBV_QP_EX_WITH_SEND,
        )
        qp = QPEx(self.context, init, first_attributes())
        self.fill("x" if self.sends else "-")
        qp.post_recv(RecvWR(num_sge=1, sg=[self.entry()]))
        self.connect(qp)
        self.exchange()
        if self.sends:
            qp.wr_start()
            qp.wr_id, qp.wr_flags = 5, e.IBV_SEND_SIGNALED
            qp.wr_send()
            qp.wr_set_sge(self.entry())
            qp.wr_complete()
        while cq.start_poll(PollCqAttr()):
            pass
        assert cq.status == e.IBV_WC_SUCCESS
        assert cq.read_timestamp() > 0
        if not self.sends:
            assert cq.read_byte_len() == BYTES
            self.check("x")
        cq.end_poll()
        self.exchange()
        qp.close()
        cq.close()
        return "all bytes"


def main() -> None:
    peer = Peer(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
    parts = {
        "queries": peer.queries,
        "refusals": peer.refusals,
        "RC": lambda: peer.connected(e.IBV_QPT_RC),
        "UC": lambda: peer.connected(e.IBV_QPT_UC),
        "SRQ": lambda: peer.connected(e.IBV_QPT_RC, shared=True),
        "UD": peer.datagrams,
        "extended": peer.extended,
    }
    for name, part in parts.items():
        print(f"{name}: {part()}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except PyverbsError as error:
        sys.exit(str(error))
