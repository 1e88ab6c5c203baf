"""Verbs by hand: h1 writes into h6's memory, reads it back, and counts with an atomic.

python examples/rdma_ping.py [SPEC] [virtual|exact|real]
"""

import sys
from pathlib import Path

import numpy as np

from emu.clocks import ClockName
from emu.rdma import CQ, AccessFlag, Lab, QPType, SendWR, WROpcode

SPEC = Path(__file__).parent / "../topologies/incast.emu.yml"
EVERYTHING = (
    AccessFlag.LOCAL_WRITE
    | AccessFlag.REMOTE_READ
    | AccessFlag.REMOTE_WRITE
    | AccessFlag.REMOTE_ATOMIC
)


async def ping(lab: Lab) -> dict[str, float]:
    """Emulated nanoseconds of each operation."""
    h1, h6 = lab.host("h1").rdma, lab.host("h6").rdma
    ours, theirs = np.arange(512, dtype=np.uint64), np.zeros(512, np.uint64)
    here, there = h1.alloc_pd(), h6.alloc_pd()
    local, remote = here.reg_mr(ours, EVERYTHING), there.reg_mr(theirs, EVERYTHING)
    cq: CQ = h1.create_cq(16)
    qp, far = here.create_qp(QPType.RC, cq), there.create_qp(QPType.RC, h6.create_cq(16))
    qp.connect(far.end)
    far.connect(qp.end)

    async def do(opcode: WROpcode, length: int = ours.nbytes, **more: int) -> float:
        began = lab.now_ns
        qp.post_send(
            SendWR(opcode, local.sge(0, length), remote_addr=remote.addr, rkey=remote.rkey, **more)
        )
        return (await cq.wait()).succeeded().at_ns - began

    took = {"write": await do(WROpcode.RDMA_WRITE)}
    assert (theirs == np.arange(512)).all()
    theirs[:] *= 2
    took["read"] = await do(WROpcode.RDMA_READ)
    assert (ours == 2 * np.arange(512)).all()
    took["fetch and add"] = await do(WROpcode.ATOMIC_FETCH_AND_ADD, 8, compare_add=42)
    assert (ours[0], theirs[0]) == (0, 42)
    return took


def main(spec: Path = SPEC, clock: ClockName = "virtual") -> None:
    with Lab(spec, clock=clock) as lab:
        for what, time_ns in lab.run(ping(lab)).items():
            print(f"{what:14} {time_ns / 1000:7.3f} us")


if __name__ == "__main__":
    main(*sys.argv[1:])
