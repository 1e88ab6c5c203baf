"""Two hosts on one switch, and queue pairs between them, for tests of verbs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from emu.rdma import CQ, MR, PD, QP, AccessFlag, Context, Lab, QPAttr, QPType

ALL = (
    AccessFlag.LOCAL_WRITE
    | AccessFlag.REMOTE_WRITE
    | AccessFlag.REMOTE_READ
    | AccessFlag.REMOTE_ATOMIC
)
BYTES = 20_000
QKEY = 0x11111111

SPEC = """
name: pair
topology:
  kind: graph
  switches: [s1]
  hosts: [h1, h2]
  links:
    - {between: [h1, s1], rate: 100Gbit, delay: 500ns}
    - {between: [h2, s1], rate: 100Gbit, delay: 500ns}
"""


@contextmanager
def lab_of(folder: Path, fabric: str = "roce", *changes: str, **options: Any) -> Iterator[Lab]:
    path = folder / "pair.emu.yml"
    path.write_text(SPEC)
    with Lab(path, f"fabric={fabric}", *changes, **options) as lab:
        yield lab


class Player:
    """One end: a host with a queue pair and some memory."""

    def __init__(self, context: Context, qp_type: QPType, **options: Any) -> None:
        self.context = context
        self.pd: PD = context.alloc_pd()
        self.cq: CQ = context.create_cq(options.pop("cqe", 128))
        self.memory = np.zeros(BYTES, np.uint8)
        self.mr: MR = self.pd.reg_mr(self.memory, ALL)
        self.qp: QP = self.pd.create_qp(qp_type, self.cq, **options)


def players(lab: Lab, qp_type: QPType = QPType.RC, **options: Any) -> tuple[Player, Player]:
    """Client and server, connected; the client's memory counts up."""
    client, server = (Player(lab.host(name).rdma, qp_type, **options) for name in ("h1", "h2"))
    client.memory[:] = np.arange(BYTES) % 251
    if qp_type is QPType.UD:
        for end in (client, server):
            end.qp.to_init(QPAttr(qkey=QKEY))
            end.qp.to_rtr(QPAttr())
            end.qp.to_rts()
    else:
        client.qp.connect(server.qp.end)
        server.qp.connect(client.qp.end)
    return client, server
