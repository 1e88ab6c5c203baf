"""Work requests and work completions: plain values that go into queues and come out of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from emu.errors import RemoteProtocolError
from emu.rdma.names import WCFlag, WCOpcode, WCStatus, WROpcode

_ENDS = {
    WROpcode.SEND: WCOpcode.SEND,
    WROpcode.SEND_WITH_IMM: WCOpcode.SEND,
    WROpcode.SEND_WITH_INV: WCOpcode.SEND,
    WROpcode.RDMA_WRITE: WCOpcode.RDMA_WRITE,
    WROpcode.RDMA_WRITE_WITH_IMM: WCOpcode.RDMA_WRITE,
    WROpcode.RDMA_READ: WCOpcode.RDMA_READ,
    WROpcode.ATOMIC_CMP_AND_SWP: WCOpcode.COMP_SWAP,
    WROpcode.ATOMIC_FETCH_AND_ADD: WCOpcode.FETCH_ADD,
}


@dataclass(frozen=True)
class SGE:
    """Some bytes of registered memory."""

    addr: int
    length: int
    lkey: int


NOTHING = SGE(0, 0, 0)
"""No bytes at all: for messages of length 0, which need no memory."""


@dataclass(frozen=True)
class AH:
    """Where datagrams go: a host's address (`Context.address`)."""

    address: int


@dataclass(frozen=True)
class SendWR:
    """A message to send. READs and atomics put what they fetch into `sge`."""

    opcode: WROpcode = WROpcode.SEND
    sge: SGE = NOTHING
    wr_id: int = 0
    """Comes back in the completion."""
    remote_addr: int = 0
    rkey: int = 0
    imm_data: int = 0
    invalidate_rkey: int = 0
    compare_add: int = 0
    """CMP_AND_SWP: what must be there; FETCH_AND_ADD: what is added."""
    swap: int = 0
    inline: bytes | NDArray[Any] | None = None
    """These bytes, instead of `sge` (IBV_SEND_INLINE): they are copied when they are posted, need
    no registered memory, and are the program's again at once. SEND and WRITE only, and no more than
    the queue pair's `max_inline_data`."""
    signaled: bool = True
    """False: it completes in silence, unless it fails."""
    ah: AH | None = None
    """UD only, with the two below."""
    remote_qpn: int = 0
    remote_qkey: int = 0

    def numbers(self) -> dict[str, int]:
        """All its numbers by name."""
        return {
            **_numbers(self.sge, self.wr_id),
            "remote_addr": self.remote_addr,
            "rkey": self.rkey,
            "imm_data": self.imm_data,
            "invalidate_rkey": self.invalidate_rkey,
            "compare_add": self.compare_add,
            "swap": self.swap,
            "ah.address": self.ah.address if self.ah else 0,
            "remote_qpn": self.remote_qpn,
            "remote_qkey": self.remote_qkey,
        }

    @property
    def immediate(self) -> int:
        """The 32 bits that go with it."""
        is_key = self.opcode is WROpcode.SEND_WITH_INV
        return self.invalidate_rkey if is_key else self.imm_data


@dataclass(frozen=True)
class RecvWR:
    """Memory for one SEND, or for the news of one WRITE with immediate data."""

    sge: SGE = NOTHING
    wr_id: int = 0

    def numbers(self) -> dict[str, int]:
        """All its numbers by name."""
        return _numbers(self.sge, self.wr_id)


def _numbers(sge: SGE, wr_id: int) -> dict[str, int]:
    return {
        "wr_id": wr_id,
        "sge.addr": sge.addr,
        "sge.length": sge.length,
        "sge.lkey": sge.lkey,
    }


@dataclass(frozen=True)
class WC:
    """The end of a work request."""

    wr_id: int
    status: WCStatus
    opcode: WCOpcode
    byte_len: int
    qp_num: int
    wc_flags: WCFlag
    imm_data: int
    """With WCFlag.WITH_INV: the key that was invalidated."""
    src_qp: int
    """Of a datagram."""
    at_ns: float
    """The emulated time at which it ended."""

    def succeeded(self) -> WC:
        """Itself. Raises RemoteProtocolError when it failed: what, and on which queue pair."""
        if self.status is not WCStatus.SUCCESS:
            raise RemoteProtocolError(
                f"QP {self.qp_num:#x}: {self.opcode.value} (wr_id {self.wr_id}) ended with "
                f"{self.status.name}"
            )
        return self


def completion(seen: Any) -> WC:
    """A C `struct work_completion` as a value."""
    verb = WROpcode(seen.verb)
    is_write = verb is WROpcode.RDMA_WRITE_WITH_IMM
    received = WCOpcode.RECV_RDMA_WITH_IMM if is_write else WCOpcode.RECV
    return WC(
        wr_id=seen.wr_id,
        status=WCStatus(seen.status),
        opcode=received if seen.is_receive else _ENDS[verb],
        byte_len=seen.byte_len,
        qp_num=seen.qp_num,
        wc_flags=WCFlag(seen.wc_flags),
        imm_data=seen.imm_data,
        src_qp=seen.src_qp,
        at_ns=seen.at_ps / 1000,
    )
