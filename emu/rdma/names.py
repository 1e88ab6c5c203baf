"""Enumerations of verbs, with the names of libibverbs and pyverbs: states, opcodes, access flags,
statuses."""

from __future__ import annotations

from enum import Enum, IntEnum, IntFlag

from emu._core import lib


class QPType(IntEnum):
    """The transport services of IBTA."""

    RC = lib.TRANSPORT_RC
    UC = lib.TRANSPORT_UC
    UD = lib.TRANSPORT_UD


class QPState(IntEnum):
    """The states of a queue pair. `emu/core/nic/qp_state.c` has the transitions."""

    RESET = lib.QP_RESET
    INIT = lib.QP_INIT
    RTR = lib.QP_RTR
    RTS = lib.QP_RTS
    SQD = lib.QP_SQD
    SQE = lib.QP_SQE
    ERR = lib.QP_ERR


class AccessFlag(IntFlag):
    """Allowed access to a memory region. Its own host may always read it."""

    LOCAL_WRITE = lib.ACCESS_LOCAL_WRITE
    REMOTE_WRITE = lib.ACCESS_REMOTE_WRITE
    REMOTE_READ = lib.ACCESS_REMOTE_READ
    REMOTE_ATOMIC = lib.ACCESS_REMOTE_ATOMIC


class WROpcode(IntEnum):
    """The operation of a send work request."""

    SEND = lib.VERB_SEND
    SEND_WITH_IMM = lib.VERB_SEND_IMM
    SEND_WITH_INV = lib.VERB_SEND_INV
    RDMA_WRITE = lib.VERB_WRITE
    RDMA_WRITE_WITH_IMM = lib.VERB_WRITE_IMM
    RDMA_READ = lib.VERB_READ
    ATOMIC_CMP_AND_SWP = lib.VERB_CMP_SWAP
    ATOMIC_FETCH_AND_ADD = lib.VERB_FETCH_ADD


class WCOpcode(Enum):
    """The operation that a work completion ends."""

    SEND = "send"
    RDMA_WRITE = "rdma_write"
    RDMA_READ = "rdma_read"
    COMP_SWAP = "comp_swap"
    FETCH_ADD = "fetch_add"
    RECV = "recv"
    RECV_RDMA_WITH_IMM = "recv_rdma_with_imm"


class WCStatus(IntEnum):
    """The status of a work completion."""

    SUCCESS = lib.STATUS_SUCCESS
    LOC_LEN_ERR = lib.STATUS_LOC_LEN_ERR
    LOC_QP_OP_ERR = lib.STATUS_LOC_QP_OP_ERR
    LOC_PROT_ERR = lib.STATUS_LOC_PROT_ERR
    WR_FLUSH_ERR = lib.STATUS_WR_FLUSH_ERR
    REM_INV_REQ_ERR = lib.STATUS_REM_INV_REQ_ERR
    REM_ACCESS_ERR = lib.STATUS_REM_ACCESS_ERR
    REM_OP_ERR = lib.STATUS_REM_OP_ERR
    RETRY_EXC_ERR = lib.STATUS_RETRY_EXC_ERR
    RNR_RETRY_EXC_ERR = lib.STATUS_RNR_RETRY_EXC_ERR


class WCFlag(IntFlag):
    """Additional information in the completion of a receive."""

    WITH_IMM = lib.WC_WITH_IMM
    WITH_INV = lib.WC_WITH_INV
    GRH = lib.WC_GRH
    """The receive is a datagram that came with a GRH, or on RoCE with an IPv4 header. Its first 40
    bytes are reserved for that; without the flag they stay as they are."""
