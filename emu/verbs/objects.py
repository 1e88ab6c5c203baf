"""The verbs objects of one program, by handle: made, changed and destroyed as its library asks.

A request that breaks a rule is answered with an errno and the reason, and changes nothing. Whatever
a program leaves behind is destroyed with it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emu._core import ffi, lib
from emu.errors import LocalProtocolError
from emu.rdma.attributes import QPAttr
from emu.rdma.completion import CQ
from emu.rdma.context import Context
from emu.rdma.memory import MR, PD
from emu.rdma.names import AccessFlag, QPState, QPType
from emu.rdma.qp import QP
from emu.rdma.srq import SRQ

_ATTRIBUTES = {
    "dest_qp_num": lib.UVERBS_DEST,
    "dest_address": lib.UVERBS_AV,
    "rq_psn": lib.UVERBS_RQ_PSN,
    "sq_psn": lib.UVERBS_SQ_PSN,
    "path_mtu": lib.UVERBS_PATH_MTU,
    "timeout": lib.UVERBS_TIMEOUT,
    "retry_cnt": lib.UVERBS_RETRY_CNT,
    "rnr_retry": lib.UVERBS_RNR_RETRY,
    "min_rnr_timer": lib.UVERBS_MIN_RNR_TIMER,
    "max_rd_atomic": lib.UVERBS_MAX_RD_ATOMIC,
    "max_dest_rd_atomic": lib.UVERBS_MAX_DEST_RD_ATOMIC,
    "qkey": lib.UVERBS_QKEY,
}
"""The attributes of a queue pair that the NIC takes, and their bits in a request."""


class Refused(Exception):
    """A request is answered with this errno."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.errno = number


@dataclass
class _Channel:
    """A completion channel: the end of a pipe that gets events."""

    file: int

    def destroy(self) -> None:
        os.close(self.file)


@dataclass
class _Region:
    region: MR
    bytes: Any
    length: int

    def destroy(self) -> None:
        self.region.dereg()
        lib.uverbs_unmap(self.bytes, self.length)


@dataclass
class _Completions:
    cq: CQ
    core: Any

    def destroy(self) -> None:
        lib.uverbs_completions_free(self.core)
        self.cq.destroy()


@dataclass
class _SharedReceives:
    srq: SRQ
    receives: Any

    def destroy(self) -> None:
        lib.uverbs_receives_free(self.receives)
        self.srq.destroy()


@dataclass
class _QueuePair:
    qp: QP
    sends: Any
    receives: Any

    def destroy(self) -> None:
        self.qp.destroy()
        lib.uverbs_sends_free(self.sends)
        if self.receives:
            lib.uverbs_receives_free(self.receives)


class ProgramObjects:
    """All objects of one program on a host."""

    def __init__(self, context: Context, client: Any, memory: int) -> None:
        """`client`: a `struct uverbs_client *`. `memory`: the file of the program's pages, owned by
        this object from now on."""
        self._context = context
        self._client = client
        self._memory = memory
        self._objects: dict[int, Any] = {}
        self._users: dict[int, set[int]] = {}
        """Handle of an object -> handles of those that use it."""
        self._last = 0
        self._commands: dict[int, Callable[[Any, Sequence[int], Any], None]] = {
            lib.UVERBS_ALLOC_PD: self._alloc_pd,
            lib.UVERBS_REG_MR: self._reg_mr,
            lib.UVERBS_CREATE_CHANNEL: self._create_channel,
            lib.UVERBS_CREATE_CQ: self._create_cq,
            lib.UVERBS_CREATE_SRQ: self._create_srq,
            lib.UVERBS_CREATE_QP: self._create_qp,
            lib.UVERBS_MODIFY_QP: self._modify_qp,
            lib.UVERBS_QUERY_QP: self._query_qp,
            lib.UVERBS_DESTROY: self._destroy,
        }

    def answer(self, request: Any, files: Sequence[int], reply: Any) -> None:
        """Carries out a request (`struct uverbs_request *`) and fills the reply. The caller closes
        the files."""
        command = self._commands.get(request.command)
        try:
            if command is None:
                raise Refused(errno.EOPNOTSUPP, f"there is no command {request.command}")
            command(request, files, reply)
        except LocalProtocolError as error:
            self._refuse(reply, errno.EINVAL, str(error))
        except Refused as error:
            self._refuse(reply, error.errno, str(error))

    def owes_responses(self, handle: int | None = None) -> bool:
        """Whether a queue pair, by default any, has to send responses for received packets. A real
        NIC has sent them before the program can react."""
        objects = self._objects.values() if handle is None else [self._objects.get(handle)]
        return any(isinstance(one, _QueuePair) and one.qp.owes_response for one in objects)

    def close(self) -> None:
        """Destroys all objects, users first."""
        for handle in sorted(self._objects, reverse=True):
            thing = self._objects.pop(handle)
            if not isinstance(thing, PD):
                thing.destroy()
        os.close(self._memory)

    @staticmethod
    def _refuse(reply: Any, number: int, reason: str) -> None:
        reply.error = number
        text = reason.encode()[: lib.UVERBS_REASON_BYTES - 1]
        ffi.memmove(reply.reason, text + b"\0", len(text) + 1)

    # ---- handles --------------------------------------------------------------

    def _add(self, thing: Any, *uses: int) -> int:
        handle = self._free_handle()
        self._objects[handle] = thing
        for used in uses:
            if used:
                self._users.setdefault(used, set()).add(handle)
        return handle

    def _free_handle(self) -> int:
        """The next handle, so that those of destroyed objects come again late."""
        for _ in range(lib.UVERBS_HANDLES):
            self._last = self._last % (lib.UVERBS_HANDLES - 1) + 1
            if self._last not in self._objects:
                return self._last
        raise Refused(errno.ENOMEM, "a program has room for 8191 verbs objects, no more")

    def _get(self, handle: int, kind: type, what: str) -> Any:
        thing = self._objects.get(handle)
        if not isinstance(thing, kind):
            raise Refused(errno.EINVAL, f"handle {handle} is no {what}")
        return thing

    def _destroy(self, request: Any, files: Sequence[int], reply: Any) -> None:
        handle = request.handle
        if handle not in self._objects:
            raise Refused(errno.EINVAL, f"handle {handle} names no object")
        if self._users.get(handle):
            raise Refused(errno.EBUSY, "other objects still use it; destroy them first")
        thing = self._objects.pop(handle)
        for users in self._users.values():
            users.discard(handle)
        if not isinstance(thing, PD):
            thing.destroy()

    # ---- memory ----------------------------------------------------------------

    def _alloc_pd(self, request: Any, files: Sequence[int], reply: Any) -> None:
        reply.handle = self._add(self._context.alloc_pd())

    def _reg_mr(self, request: Any, files: Sequence[int], reply: Any) -> None:
        wanted = request.mr
        pd = self._get(wanted.pd, PD, "protection domain")
        bytes_ = lib.uverbs_map(self._memory, wanted.addr, wanted.length)
        if not bytes_:
            raise Refused(errno.EFAULT, f"{wanted.length} bytes cannot be mapped by the NIC")
        array = np.frombuffer(ffi.buffer(bytes_, wanted.length), np.uint8)
        try:
            region = pd.reg_mr(array, AccessFlag(wanted.access), iova=wanted.iova)
        except LocalProtocolError:
            lib.uverbs_unmap(bytes_, wanted.length)
            raise
        reply.handle = self._add(_Region(region, bytes_, wanted.length), wanted.pd)
        reply.number = region.lkey

    # ---- completions -------------------------------------------------------------

    def _create_channel(self, request: Any, files: Sequence[int], reply: Any) -> None:
        (end,) = self._files(files, 1)
        os.set_blocking(end, False)
        reply.handle = self._add(_Channel(os.dup(end)))

    def _create_cq(self, request: Any, files: Sequence[int], reply: Any) -> None:
        (memory,) = self._files(files, 1)
        wanted = request.cq
        channel = -1
        if wanted.channel:
            channel = self._get(wanted.channel, _Channel, "completion channel").file
        cq = CQ(self._context, wanted.cqe)
        handle = self._free_handle()
        core = lib.uverbs_completions_new(
            self._client, cq.core, handle, memory, wanted.cqe, channel
        )
        if not core:
            cq.destroy()
            raise self._bad_memory()
        self._objects[handle] = _Completions(cq, core)
        if wanted.channel:
            self._users.setdefault(wanted.channel, set()).add(handle)
        reply.handle = handle

    def _create_srq(self, request: Any, files: Sequence[int], reply: Any) -> None:
        (memory,) = self._files(files, 1)
        wanted = request.srq
        srq = self._get(wanted.pd, PD, "protection domain").create_srq(wanted.max_wr)
        handle = self._free_handle()
        receives = lib.uverbs_receives_new(
            self._client, handle, memory, wanted.max_wr, ffi.NULL, srq.core
        )
        if not receives:
            srq.destroy()
            raise self._bad_memory()
        self._objects[handle] = _SharedReceives(srq, receives)
        self._users.setdefault(wanted.pd, set()).add(handle)
        reply.handle = handle

    # ---- queue pairs -----------------------------------------------------------------

    def _create_qp(self, request: Any, files: Sequence[int], reply: Any) -> None:
        wanted = request.qp
        memory = self._files(files, 1 if wanted.srq else 2)
        srq = self._get(wanted.srq, _SharedReceives, "SRQ").srq if wanted.srq else None
        qp = self._get(wanted.pd, PD, "protection domain").create_qp(
            QPType(wanted.transport),
            self._get(wanted.send_cq, _Completions, "completion queue").cq,
            self._get(wanted.recv_cq, _Completions, "completion queue").cq,
            max_send_wr=wanted.max_send_wr,
            max_recv_wr=wanted.max_recv_wr,
            max_inline_data=wanted.max_inline_data,
            srq=srq,
        )
        handle = self._free_handle()
        sends = lib.uverbs_sends_new(
            self._client,
            handle,
            memory[0],
            wanted.max_send_wr,
            wanted.max_inline_data,
            qp.work,
            qp.qp_type is QPType.UD,
        )
        receives = ffi.NULL
        if sends and srq is None:
            receives = lib.uverbs_receives_new(
                self._client, handle, memory[1], wanted.max_recv_wr, qp.work, ffi.NULL
            )
        if not sends or (srq is None and not receives):
            if sends:
                lib.uverbs_sends_free(sends)
            qp.destroy()
            raise self._bad_memory()
        self._objects[handle] = _QueuePair(qp, sends, receives)
        for used in {wanted.pd, wanted.send_cq, wanted.recv_cq, wanted.srq} - {0}:
            self._users.setdefault(used, set()).add(handle)
        reply.handle, reply.number = handle, qp.qp_num

    def _modify_qp(self, request: Any, files: Sequence[int], reply: Any) -> None:
        qp: QP = self._get(request.handle, _QueuePair, "queue pair").qp
        attr = request.attr
        given = {name: getattr(attr, name) for name, bit in _ATTRIBUTES.items() if attr.given & bit}
        state = QPState(attr.state) if attr.given & lib.UVERBS_STATE else qp.qp_state
        qp.modify(state, QPAttr(**given))
        reply.state = qp.qp_state

    def _query_qp(self, request: Any, files: Sequence[int], reply: Any) -> None:
        reply.state = self._get(request.handle, _QueuePair, "queue pair").qp.qp_state

    @staticmethod
    def _files(files: Sequence[int], count: int) -> Sequence[int]:
        if len(files) != count:
            raise Refused(errno.EINVAL, f"{len(files)} files came with it instead of {count}")
        return files

    @staticmethod
    def _bad_memory() -> Refused:
        return Refused(errno.EINVAL, "its memory has not the right size, or may shrink")
