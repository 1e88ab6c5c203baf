"""RDMA verbs for Python programs on an emulated fabric, by pyverbs' and libibverbs' names.

    Lab ── host("h1").rdma ─▶ Context ── alloc_pd ──▶ PD ── reg_mr ────▶ MR
                                 │                    ├─── create_qp ──▶ QP ── post_send, post_recv
                                 │                    └─── create_srq ─▶ SRQ ── post_recv
                                 └─────── create_cq ─────▶ CQ ── poll, await wait

A program is the same on both clocks (`emu.rdma.clock`): what it posts, real NICs
would send, packet by packet, through the spec's switches, faults included. A call that
breaks a rule raises LocalProtocolError, says why, and changes nothing; what goes wrong
at the far end is a completion's status.

Left out: memory windows, several elements in one work request, XRC, multicast, and completion
channels: a CQ can be awaited.
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
