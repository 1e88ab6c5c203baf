"""The verbs objects of one program, by handle: made, changed and destroyed as its library asks.

A request that breaks a rule is answered with an errno and the reason, and changes nothing. Whatever
a program leaves behind is destroyed with it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np

from emu._core import ffi, lib
from emu.errors import FabricError, LocalProtocolError
from emu.rdma.attributes import QPAttr
from emu.rdma.completion import CQ
from emu.rdma.context import Context
from emu.rdma.limits import refuse_numbers
from emu.rdma.memory import MR, PD, NoMoreRegionsError
from emu.rdma.names import AccessFlag, QPState, QPType
from emu.rdma.qp import QP
from emu.rdma.srq import SRQ
from emu.verbs.device import pkeys_of

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


_PAGE = 4096
_Member = TypeVar("_Member", bound=IntEnum)
Command = Callable[[Any, Sequence[int], Any], None]
"""Carries out a request (`struct uverbs_request *`) with its files, and fills the reply."""


class Refused(Exception):
    """A request is answered with this errno."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.errno = number


@dataclass
class _Domain:
    """A protection domain. The NIC keeps nothing for it."""

    pd: PD

    def destroy(self) -> None:
        """Does nothing."""


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
    begin: int
    """The address in the program."""
    length: int

    def destroy(self) -> None:
        self.region.dereg()
        lib.uverbs_unmap(self.bytes, self.length)

    def detach(self, begin: int, end: int) -> bool:
        """Gives the region a copy of these bytes, in whole pages. False: memory is short."""
        begin, end = max(begin, self.begin), min(end, self.begin + self.length)
        if begin >= end:
            return True
        first = max(self.begin, begin & -_PAGE)
        return bool(lib.uverbs_detach(self.bytes + (first - self.begin), end - first))


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


@dataclass
class _Held:
    """An object, and which others it uses and is used by."""

    thing: Any
    uses: tuple[int, ...]
    """Their handles."""
    users: set[int] = field(default_factory=set)
    """Likewise."""


class ProgramObjects:
    """All objects of one program on a host."""

    def __init__(self, context: Context, client: Any, memory: int) -> None:
        """`client`: a `struct uverbs_client *`. `memory`: the file of the program's pages, owned by
        this object from now on."""
        self._context = context
        self._client = client
        self._memory = memory
        self._pkeys = pkeys_of(context)
        self._held: dict[int, _Held] = {}
        self._last = 0
        self._commands: dict[int, Command] = {
            lib.UVERBS_ALLOC_PD: self._alloc_pd,
            lib.UVERBS_REG_MR: self._reg_mr,
            lib.UVERBS_REREG_MR: self._rereg_mr,
            lib.UVERBS_DETACH_MR: self._detach_mr,
            lib.UVERBS_CREATE_CQ: self._create_cq,
            lib.UVERBS_RESIZE_CQ: self._resize_cq,
            lib.UVERBS_CREATE_SRQ: self._create_srq,
            lib.UVERBS_MODIFY_SRQ: self._modify_srq,
            lib.UVERBS_QUERY_SRQ: self._query_srq,
            lib.UVERBS_CREATE_QP: self._create_qp,
            lib.UVERBS_MODIFY_QP: self._modify_qp,
            lib.UVERBS_QUERY_QP: self._query_qp,
            lib.UVERBS_DESTROY: self._destroy,
        }

    def add_commands(self, commands: Mapping[int, Command]) -> None:
        """Lets `answer` carry out these, too."""
        self._commands.update(commands)

    def answer(self, request: Any, files: Sequence[int], reply: Any, given: list[int]) -> None:
        """Carries out a request (`struct uverbs_request *`) and fills the reply. The caller closes
        the files, and those that this adds to `given` once they are sent."""
        try:
            if request.command == lib.UVERBS_CREATE_CHANNEL:
                self._create_channel(reply, given)
            elif command := self._commands.get(request.command):
                command(request, files, reply)
            else:
                raise Refused(errno.EOPNOTSUPP, f"there is no command {request.command}")
        except LocalProtocolError as error:
            self._refuse(reply, errno.EINVAL, str(error))
        except FabricError as error:  # memory is short
            self._refuse(reply, errno.ENOMEM, str(error))
        except Refused as error:
            self._refuse(reply, error.errno, str(error))

    def owes_responses(self, handle: int | None = None) -> bool:
        """Whether a queue pair, by default any, has to send responses for received packets. A real
        NIC has sent them before the program can react."""
        wanted = self._held if handle is None else self._held.keys() & {handle}
        things = (self._held[one].thing for one in wanted)
        return any(isinstance(one, _QueuePair) and one.qp.owes_response for one in things)

    def close(self) -> None:
        """Destroys all objects, users first."""
        while self._held:
            unused = [handle for handle, held in self._held.items() if not held.users]
            for handle in unused:
                self._end(handle)
        os.close(self._memory)
        self._commands.clear()  # a cycle; on the real clock no garbage is collected

    @staticmethod
    def _refuse(reply: Any, number: int, reason: str) -> None:
        reply.error = number
        text = reason.encode()[: lib.UVERBS_REASON_BYTES - 1]
        ffi.memmove(reply.reason, text + b"\0", len(text) + 1)

    # ---- handles --------------------------------------------------------------

    def _add(self, handle: int, thing: Any, *uses: int) -> int:
        self._held[handle] = _Held(thing, uses)
        for used in uses:
            self._held[used].users.add(handle)
        return handle

    def _free_handle(self) -> int:
        """The next handle, so that those of destroyed objects come again late."""
        for _ in range(lib.UVERBS_HANDLES):
            self._last = self._last % (lib.UVERBS_HANDLES - 1) + 1
            if self._last not in self._held:
                return self._last
        raise Refused(errno.ENOMEM, "a program has room for 8191 verbs objects, no more")

    def _get(self, handle: int, kind: type, what: str) -> Any:
        held = self._held.get(handle)
        if held is None or not isinstance(held.thing, kind):
            raise Refused(errno.EINVAL, f"handle {handle} is no {what}")
        return held.thing

    def _destroy(self, request: Any, files: Sequence[int], reply: Any) -> None:
        held = self._held.get(request.handle)
        if held is None:
            raise Refused(errno.EINVAL, f"handle {request.handle} names no object")
        if held.users:
            raise Refused(errno.EBUSY, "other objects still use it; destroy them first")
        self._end(request.handle)

    def _end(self, handle: int) -> None:
        held = self._held.pop(handle)
        for used in held.uses:
            self._held[used].users.discard(handle)
        held.thing.destroy()

    def _domain(self, handle: int) -> PD:
        pd: PD = self._get(handle, _Domain, "protection domain").pd
        return pd

    # ---- memory ----------------------------------------------------------------

    def _alloc_pd(self, request: Any, files: Sequence[int], reply: Any) -> None:
        reply.handle = self._add(self._free_handle(), _Domain(self._context.alloc_pd()))

    def _reg_mr(self, request: Any, files: Sequence[int], reply: Any) -> None:
        handle, wanted = self._free_handle(), request.mr
        made = self._region(self._domain(wanted.pd), wanted.addr, wanted.length, wanted)
        reply.handle = self._add(handle, made, wanted.pd)
        reply.number = made.region.lkey

    def _region(self, pd: PD, begin: int, length: int, wanted: Any) -> _Region:
        bytes_ = lib.uverbs_map(self._memory, begin, length)
        if not bytes_:
            raise Refused(errno.EFAULT, f"{length} bytes cannot be mapped by the NIC")
        array = np.frombuffer(ffi.buffer(bytes_, length), np.uint8)
        try:
            region = pd.reg_mr(array, AccessFlag(wanted.access), iova=wanted.iova)
        except (LocalProtocolError, ValueError) as error:
            lib.uverbs_unmap(bytes_, length)
            is_full = isinstance(error, NoMoreRegionsError)
            raise Refused(errno.ENOMEM if is_full else errno.EINVAL, str(error)) from None
        return _Region(region, bytes_, begin, length)

    def _rereg_mr(self, request: Any, files: Sequence[int], reply: Any) -> None:
        """The region gets a new key, so that requests under way with the old one fail."""
        old: _Region = self._get(request.handle, _Region, "memory region")
        (old_domain,) = self._held[request.handle].uses
        wanted = request.mr
        begin, length = old.begin, old.length
        if wanted.given & lib.UVERBS_NEW_MEMORY:
            begin, length = wanted.addr, wanted.length
        else:
            wanted.iova = old.region.addr
        if not wanted.given & lib.UVERBS_NEW_ACCESS:
            wanted.access = old.region.access
        domain = wanted.pd if wanted.given & lib.UVERBS_NEW_PD else old_domain
        made = self._region(self._domain(domain), begin, length, wanted)
        self._end(request.handle)
        reply.handle = self._add(request.handle, made, domain)
        reply.number = made.region.lkey

    def _detach_mr(self, request: Any, files: Sequence[int], reply: Any) -> None:
        region: _Region = self._get(request.handle, _Region, "memory region")
        if not region.detach(request.mr.addr, request.mr.addr + request.mr.length):
            raise Refused(errno.ENOMEM, "no memory for a copy of the region's pages")

    # ---- completions -------------------------------------------------------------

    def _create_channel(self, reply: Any, given: list[int]) -> None:
        """A program that has the writing end could let the NICs wait for it."""
        handle = self._free_handle()
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(reading, True)
        given.append(reading)
        reply.handle = self._add(handle, _Channel(writing))

    def _create_cq(self, request: Any, files: Sequence[int], reply: Any) -> None:
        (memory,) = self._files(files, 1)
        handle, wanted = self._free_handle(), request.cq
        file = -1
        uses: tuple[int, ...] = ()
        if wanted.channel:
            file = self._get(wanted.channel, _Channel, "completion channel").file
            uses = (wanted.channel,)
        cq = CQ(self._context, wanted.cqe)
        core = lib.uverbs_completions_new(self._client, cq.core, handle, memory, wanted.cqe, file)
        if not core:
            cq.destroy()
            raise self._bad_memory()
        reply.handle = self._add(handle, _Completions(cq, core), *uses)

    def _resize_cq(self, request: Any, files: Sequence[int], reply: Any) -> None:
        (memory,) = self._files(files, 1)
        completions = self._get(request.handle, _Completions, "completion queue")
        refuse_numbers(self._context.name, {"cqe": request.cq.cqe})
        reply.error = lib.uverbs_completions_resize(completions.core, memory, request.cq.cqe)

    def _create_srq(self, request: Any, files: Sequence[int], reply: Any) -> None:
        (memory,) = self._files(files, 1)
        handle, wanted = self._free_handle(), request.srq
        srq = self._domain(wanted.pd).create_srq(wanted.max_wr)
        receives = lib.uverbs_receives_new(
            self._client, handle, memory, wanted.max_wr, ffi.NULL, srq.core
        )
        if not receives:
            srq.destroy()
            raise self._bad_memory()
        reply.handle = self._add(handle, _SharedReceives(srq, receives), wanted.pd)

    def _modify_srq(self, request: Any, files: Sequence[int], reply: Any) -> None:
        srq: SRQ = self._get(request.handle, _SharedReceives, "SRQ").srq
        lib.verbs_srq_arm(srq.core, request.limit.limit)

    def _query_srq(self, request: Any, files: Sequence[int], reply: Any) -> None:
        srq: SRQ = self._get(request.handle, _SharedReceives, "SRQ").srq
        reply.number = lib.verbs_srq_limit(srq.core)

    # ---- queue pairs -----------------------------------------------------------------

    def _create_qp(self, request: Any, files: Sequence[int], reply: Any) -> None:
        handle, wanted = self._free_handle(), request.qp
        memory = self._files(files, 1 if wanted.srq else 2)
        srq = self._get(wanted.srq, _SharedReceives, "SRQ").srq if wanted.srq else None
        qp = self._domain(wanted.pd).create_qp(
            self._member(QPType, wanted.transport),
            self._get(wanted.send_cq, _Completions, "completion queue").cq,
            self._get(wanted.recv_cq, _Completions, "completion queue").cq,
            max_send_wr=wanted.max_send_wr,
            max_recv_wr=wanted.max_recv_wr,
            max_inline_data=wanted.max_inline_data,
            srq=srq,
        )
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
        uses = {wanted.pd, wanted.send_cq, wanted.recv_cq, wanted.srq} - {0}
        self._add(handle, _QueuePair(qp, sends, receives), *uses)
        reply.handle, reply.number = handle, qp.qp_num

    def _modify_qp(self, request: Any, files: Sequence[int], reply: Any) -> None:
        pair: _QueuePair = self._get(request.handle, _QueuePair, "queue pair")
        qp, attr = pair.qp, request.attr
        given: dict[str, Any] = {
            name: getattr(attr, name) for name, bit in _ATTRIBUTES.items() if attr.given & bit
        }
        state = qp.qp_state
        if attr.given & lib.UVERBS_CUR_STATE and attr.cur_state != state:
            raise Refused(errno.EINVAL, f"cur_qp_state is wrong: the queue pair is in {state.name}")
        if attr.given & lib.UVERBS_STATE:
            state = self._member(QPState, attr.state)
        if attr.given & lib.UVERBS_ACCESS_FLAGS:
            given["qp_access_flags"] = AccessFlag(attr.access & sum(AccessFlag))
        qp.modify(state, QPAttr(**given | self._path(attr)))
        if state is QPState.RESET and pair.receives:
            lib.uverbs_receives_reset(pair.receives)
        if attr.given & lib.UVERBS_EVENT_WHEN_DRAINED:
            lib.verbs_note_when_drained(qp.work)
        reply.state = qp.qp_state

    def _path(self, attr: Any) -> dict[str, Any]:
        """The attributes of packets. Of the numbers that a program leaves 0, those of the spec
        stand."""
        path = {}
        if attr.given & lib.UVERBS_AV and self._context.is_ethernet and attr.traffic_class:
            path["dscp"] = attr.traffic_class >> 2
        if attr.given & lib.UVERBS_AV and not self._context.is_ethernet and attr.sl:
            path["sl"] = attr.sl
        if attr.given & lib.UVERBS_PKEY_INDEX:
            if attr.pkey_index >= len(self._pkeys):
                raise Refused(errno.EINVAL, f"the port has no P_Key {attr.pkey_index}")
            if not self._context.is_ethernet:
                path["pkey"] = self._pkeys[attr.pkey_index]
        return path

    def _query_qp(self, request: Any, files: Sequence[int], reply: Any) -> None:
        reply.state = self._get(request.handle, _QueuePair, "queue pair").qp.qp_state

    @staticmethod
    def _member(of: type[_Member], value: int) -> _Member:
        try:
            return of(value)
        except ValueError:
            raise Refused(errno.EINVAL, f"there is no {of.__name__} {value}") from None

    @staticmethod
    def _files(files: Sequence[int], count: int) -> Sequence[int]:
        if len(files) != count:
            raise Refused(errno.EINVAL, f"{len(files)} files came with it instead of {count}")
        return files

    @staticmethod
    def _bad_memory() -> Refused:
        return Refused(errno.EINVAL, "its memory has not the right size, or may shrink")
