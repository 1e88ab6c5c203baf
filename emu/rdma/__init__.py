"""RDMA verbs for Python programs on an emulated fabric, with the names of pyverbs and libibverbs.

    Lab ── host("h1").rdma ─▶ Context ── alloc_pd ──▶ PD ── reg_mr ────▶ MR
                                 │                    ├─── create_qp ──▶ QP ── post_send, post_recv
                                 │                    └─── create_srq ─▶ SRQ ── post_recv
                                 └─────── create_cq ─────▶ CQ ── poll, await wait

A program is the same on all clocks (`emu.rdma.clock`). Its work requests are sent packet by
packet through the spec's switches, as real NICs would send them, and faults of the spec apply.
A call that breaks a rule raises LocalProtocolError with the reason, and changes nothing. Errors
at the remote end appear as the status of a completion.

Left out: memory windows, several elements in one work request, XRC, multicast, and completion
channels, because a program can await a CQ.
"""

from emu.rdma.attributes import QPAttr
from emu.rdma.completion import CQ
from emu.rdma.context import Context
from emu.rdma.lab import Lab, LabHost
from emu.rdma.memory import MR, PD
from emu.rdma.names import (
    AccessFlag,
    QPState,
    QPType,
    WCFlag,
    WCOpcode,
    WCStatus,
    WROpcode,
)
from emu.rdma.qp import QP, QPEnd
from emu.rdma.srq import SRQ
from emu.rdma.work import AH, NOTHING, SGE, WC, RecvWR, SendWR

__all__ = [
    "AH",
    "CQ",
    "MR",
    "NOTHING",
    "PD",
    "QP",
    "SGE",
    "SRQ",
    "WC",
    "AccessFlag",
    "Context",
    "Lab",
    "LabHost",
    "QPAttr",
    "QPEnd",
    "QPState",
    "QPType",
    "RecvWR",
    "SendWR",
    "WCFlag",
    "WCOpcode",
    "WCStatus",
    "WROpcode",
]
