"""Protection domains, and numpy arrays registered in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emu._core import ffi, lib
from emu.errors import LocalProtocolError
from emu.rdma.completion import CQ
from emu.rdma.limits import refuse_numbers
from emu.rdma.names import AccessFlag, QPType
from emu.rdma.work import SGE

if TYPE_CHECKING:
    from emu.rdma.context import Context
    from emu.rdma.qp import QP
    from emu.rdma.srq import SRQ

Array = NDArray[Any]

_REMOTE_CHANGES = AccessFlag.REMOTE_WRITE | AccessFlag.REMOTE_ATOMIC


class PD:
    """A protection domain: its keys are valid only for its own queue pairs."""

    def __init__(self, context: Context, handle: int) -> None:
        self.context = context
        self.handle = handle
        self.regions: list[MR] = []

    def reg_mr(self, array: Array, access: AccessFlag, iova: int | None = None) -> MR:
        """Registers all bytes of an array. The NIC then reads and writes the array itself, not a
        copy.

        `iova` is its address for remote access; by default one is chosen. Raises
        LocalProtocolError for an array that is not contiguous, or holds Python objects, for
        LOCAL_WRITE on a read-only array, for contradictory access flags, and for addresses beyond
        64 bits.
        """
        return MR(self, array, access, iova)

    def sge(self, array: Array) -> SGE:
        """The scatter/gather element for a registered array or a part of one.

        Raises LocalProtocolError when the array is not registered.
        """
        for region in self.regions:
            if region.lkey and region.holds(array):
                return region.sge(_address(array) - _address(region.array), array.nbytes)
        raise LocalProtocolError(
            f"{self.context.name}: these {array.nbytes} bytes are not registered in this protection"
            " domain; pass them to reg_mr first"
        )

    def create_srq(self, max_wr: int) -> SRQ:
        """A queue of receives that several queue pairs share."""
        from emu.rdma.srq import SRQ

        return SRQ(self, max_wr)

    def create_qp(
        self,
        qp_type: QPType,
        scq: CQ,
        rcq: CQ | None = None,
        *,
        max_send_wr: int = 64,
        max_recv_wr: int = 64,
        max_inline_data: int = 0,
        srq: SRQ | None = None,
    ) -> QP:
        """A queue pair in RESET. Its completions go to `scq`, those of receives to `rcq`.

        Messages of up to `max_inline_data` bytes may be sent inline (`SendWR.inline`).
        Raises LocalProtocolError for a number out of range, for a queue of another host or
        protection domain, and when the NIC has no more queue pairs.
        """
        from emu.rdma.qp import QP

        return QP(self, qp_type, scq, rcq or scq, max_send_wr, max_recv_wr, max_inline_data, srq)


class NoMoreRegionsError(LocalProtocolError):
    """The NIC has no room for another memory region."""


class MR:
    """A memory region: an array that the NIC may use."""

    def __init__(self, pd: PD, array: Array, access: AccessFlag, iova: int | None) -> None:
        context = pd.context
        _refuse_unusable(context.name, array, access)
        if iova is not None:
            _refuse_address(context.name, iova, array.nbytes)
        self.pd, self.array, self.access = pd, array, access
        self.length = array.nbytes
        self.addr = context.next_address(self.length) if iova is None else iova
        bytes_ = ffi.from_buffer("uint8_t[]", array)
        with context.clock.frozen():
            key = lib.nic_add_region(
                context.core, pd.handle, self.addr, self.length, access, bytes_
            )
        if not key:
            raise NoMoreRegionsError(
                f"{context.name}: its NIC has room for {context.max_mr} memory regions, no more"
            )
        self.lkey = self.rkey = int(key)
        pd.regions.append(self)
        context.hold(self)

    def sge(self, offset: int = 0, length: int | None = None) -> SGE:
        """The element for `length` bytes from `offset` on; by default all bytes to the end.

        Raises LocalProtocolError when they are not all inside the region.
        """
        size = self.length - offset if length is None else length
        if offset < 0 or size < 0 or offset + size > self.length:
            raise LocalProtocolError(
                f"{self.pd.context.name}: bytes {offset} to {offset + size} are not all in a "
                f"region of {self.length}"
            )
        return SGE(self.addr + offset, size, self.lkey)

    def holds(self, array: Array) -> bool:
        """Whether the array is contiguous and all its bytes are in the region."""
        start = _address(array) - _address(self.array)
        inside = start >= 0 and start + array.nbytes <= self.length
        return inside and bool(array.flags.c_contiguous)

    def dereg(self) -> None:
        """Invalidates the key, unless a SEND with invalidate has done so. Outstanding work requests
        with the key fail with LOC_PROT_ERR. The NIC no longer uses the array.

        Raises LocalProtocolError when the region was deregistered before.
        """
        context = self.pd.context
        if self not in self.pd.regions:
            raise LocalProtocolError(
                f"{context.name}: the region of key {self.lkey:#x} was deregistered before"
            )
        with context.clock.frozen():
            lib.nic_invalidate(context.core, self.pd.handle, self.lkey)
        self.pd.regions.remove(self)
        context.release(self)


def _address(array: Array) -> int:
    return int(array.ctypes.data)


def _refuse_unusable(name: str, array: Array, access: AccessFlag) -> None:
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        raise LocalProtocolError(
            f"{name}: a memory region is one piece of memory; register a numpy array in C order, "
            "or numpy.ascontiguousarray of it"
        )
    if array.dtype.hasobject:
        raise LocalProtocolError(
            f"{name}: an array of {array.dtype} holds references to Python objects, not their "
            "bytes; register an array of numbers"
        )
    refuse_numbers(name, {"access": access})
    if access & _REMOTE_CHANGES and not access & AccessFlag.LOCAL_WRITE:
        raise LocalProtocolError(
            f"{name}: REMOTE_WRITE and REMOTE_ATOMIC are for memory that may be written locally "
            "too; add LOCAL_WRITE"
        )
    if access & AccessFlag.LOCAL_WRITE and not array.flags.writeable:
        raise LocalProtocolError(f"{name}: the array is read-only; leave LOCAL_WRITE out")


def _refuse_address(name: str, iova: int, length: int) -> None:
    refuse_numbers(name, {"iova": iova})
    if iova + length > 1 << 64:
        raise LocalProtocolError(
            f"{name}: {length} bytes from iova={iova:#x} on end beyond 64 bits; use a lower iova"
        )
