"""Work requests and work completions as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from emu._core import ffi
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
    """A scatter/gather element: a range of registered memory."""

    addr: int
    length: int
    lkey: int


def elements(sge: SGE) -> Any:
    """The scatter/gather list of that element, as a C array."""
    return ffi.new("struct sge[]", [(sge.addr, sge.length, sge.lkey)])


NOTHING = SGE(0, 0, 0)
"""The empty element, for messages of length 0, which need no memory."""


@dataclass(frozen=True)
class AH:
    """An address handle for datagrams: the destination host's `Context.address`."""

    address: int


@dataclass(frozen=True)
class SendWR:
    """A message to send. READs and atomics put the fetched bytes into `sge`."""

    opcode: WROpcode = WROpcode.SEND
    sge: SGE = NOTHING
    wr_id: int = 0
    """Returned in the completion."""
    remote_addr: int = 0
    rkey: int = 0
    imm_data: int = 0
    invalidate_rkey: int = 0
    compare_add: int = 0
    """CMP_AND_SWP: the value to compare with; FETCH_AND_ADD: the value to add."""
    swap: int = 0
    inline: bytes | NDArray[Any] | None = None
    """Bytes to send instead of `sge` (IBV_SEND_INLINE). Posting copies them, so they need no
    registered memory, and the program may change them at once. For SEND and WRITE only, up to the
    queue pair's `max_inline_data`."""
    signaled: bool = True
    """False: there is no completion unless the request fails."""
    ah: AH | None = None
    """The destination, for UD only, with `remote_qpn` and `remote_qkey`."""
    remote_qpn: int = 0
    remote_qkey: int = 0

    def numbers(self) -> dict[str, int]:
        """All numbers of the request, by name."""
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
        """The 32 bits sent with the message: immediate data, or the key to invalidate."""
        is_key = self.opcode is WROpcode.SEND_WITH_INV
        return self.invalidate_rkey if is_key else self.imm_data


@dataclass(frozen=True)
class RecvWR:
    """A receive, for one SEND or one WRITE with immediate data."""

    sge: SGE = NOTHING
    wr_id: int = 0

    def numbers(self) -> dict[str, int]:
        """All numbers of the request, by name."""
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
    """A work completion."""

    wr_id: int
    status: WCStatus
    opcode: WCOpcode
    byte_len: int
    qp_num: int
    wc_flags: WCFlag
    imm_data: int
    """The immediate data; with WCFlag.WITH_INV, the key that was invalidated."""
    src_qp: int
    """The number of the queue pair that sent a datagram."""
    at_ns: float
    """The emulated time of the completion."""

    def succeeded(self) -> WC:
        """This completion. Raises RemoteProtocolError if the request failed."""
        if self.status is not WCStatus.SUCCESS:
            raise RemoteProtocolError(
                f"QP {self.qp_num:#x}: {self.opcode.value} (wr_id {self.wr_id}) ended with "
                f"{self.status.name}"
            )
        return self


def completion(seen: Any) -> WC:
    """The value of a C `struct work_completion`."""
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
