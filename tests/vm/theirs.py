"""rxe's end of the one-sided exchange, by pyverbs: `/usr/bin/python3 theirs.py BYTES`.

Mirrors `write_and_read` of ours.py. It runs under Debian's Python, without the project.
"""

import json
import socket
import sys
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address

from pyverbs import enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

PORT = 18515
BYTE = 0xA7
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ


def say(line: socket.socket, told: Mapping[str, object]) -> None:
    line.sendall(json.dumps(told).encode() + b"\n")


def connect(qp: QP, far: Mapping[str, int], peer: str) -> None:
    """Bring the queue pair to RTS."""
    attr = QPAttr(port_num=1)
    attr.qp_access_flags = ACCESS
    attr.dest_qp_num, attr.rq_psn, attr.sq_psn = far["qpn"], far["psn"], 4711
    attr.path_mtu, attr.timeout, attr.retry_cnt, attr.rnr_retry = e.IBV_MTU_1024, 18, 7, 7
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
    route = GlobalRoute(dgid=GID(str(IPv6Address("::ffff:" + peer).exploded)), sgid_index=1)
    attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
    qp.to_rts(attr)


def do(qp: QP, cq: CQ, opcode: int, mr: MR, size: int, far: Mapping[str, int]) -> None:
    """Carry out one operation and wait for its completion."""
    request = SendWR(opcode=opcode, num_sge=1, sg=[SGE(mr.buf, size, mr.lkey)])
    request.set_wr_rdma(far["rkey"], far["addr"])
    qp.post_send(request)
    while True:
        count, completions = cq.poll(1)
        if count:
            assert completions[0].status == e.IBV_WC_SUCCESS, completions[0]
            return


def main(size: int) -> None:
    context = Context(name="rxe0")
    pd, cq = PD(context), CQ(context, 16)
    lent, out, back = (MR(pd, size, ACCESS) for _ in range(3))
    init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_send_wr=8, max_recv_wr=8))
    qp = QP(pd, init)
    with socket.create_server(("", PORT)) as listener:
        line, (peer, _) = listener.accept()
    file = line.makefile("r")
    far = json.loads(file.readline())
    own = {"qpn": qp.qp_num, "psn": 4711, "addr": lent.buf, "rkey": lent.rkey}
    connect(qp, far, peer)
    say(line, own | {"address": int(IPv4Address(line.getsockname()[0]))})
    assert json.loads(file.readline()) == {"turn": "yours"}
    out.write(bytes([BYTE]) * size, size)
    do(qp, cq, e.IBV_WR_RDMA_WRITE, out, size, far)
    do(qp, cq, e.IBV_WR_RDMA_READ, back, size, far)
    say(line, {"same": back.read(size, 0) == bytes([BYTE]) * size, "byte": BYTE})


main(int(sys.argv[1]))
