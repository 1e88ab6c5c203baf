"""Queue pairs: their states, and their work requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from emu._core import ffi, lib
from emu.bindings.nics import have
from emu.errors import LocalProtocolError
from emu.rdma.attributes import AS_IT_IS, REMOTE, SETTINGS, TAKEN, QPAttr
from emu.rdma.completion import CQ
from emu.rdma.errors import refuse_receive, refuse_send
from emu.rdma.limits import LIMITS, refuse_non_member, refuse_numbers
from emu.rdma.memory import PD
from emu.rdma.names import AccessFlag, QPState, QPType, WROpcode
from emu.rdma.srq import SRQ
from emu.rdma.work import NOTHING, RecvWR, SendWR, elements

_ALL_ACCESS = AccessFlag(sum(AccessFlag))


@dataclass(frozen=True)
class QPEnd:
    """The values of one end that the other end needs to connect."""

    qp_num: int
    psn: int
    address: int


class QP:
    """A queue pair."""

    def __init__(
        self,
        pd: PD,
        qp_type: QPType,
        scq: CQ,
        rcq: CQ,
        max_send_wr: int,
        max_recv_wr: int,
        max_inline_data: int,
        srq: SRQ | None,
    ) -> None:
        context = self._context = pd.context
        refuse_non_member(context.name, "qp_type", qp_type, QPType)
        rooms = {
            "max_send_wr": max_send_wr,
            "max_recv_wr": max_recv_wr,
            "max_inline_data": max_inline_data,
        }
        refuse_numbers(context.name, rooms)
        if srq is not None and srq.pd is not pd:
            raise LocalProtocolError(f"{context.name}: the SRQ is of another protection domain")
        for cq in (scq, rcq):
            if cq.context is not context:
                raise LocalProtocolError(
                    f"{context.name}: the completion queue is {cq.context.name}'s; make one here"
                )
        self.pd, self.qp_type = pd, qp_type
        self._rooms = max_send_wr, 0 if srq else max_recv_wr, max_inline_data
        self._config = context.qp_config(qp_type, pd.handle, srq.core if srq else None)
        self._levels: dict[int, int] = {}
        with context.clock.frozen():
            self._core = context.add_qp(self._config)
            work = lib.verbs_qp_new(self._core, scq.core, rcq.core, *self._rooms)
        self.work = context.keep(have(work, "a queue pair"), lib.verbs_qp_free)
        """The `struct verbs_qp`."""

    def __repr__(self) -> str:
        return f"{self._context.name}'s {self.qp_type.name} queue pair {self.qp_num:#x}"

    @property
    def qp_num(self) -> int:
        return int(lib.qp_number(self._core))

    @property
    def qp_state(self) -> QPState:
        return QPState(lib.qp_state(self._core))

    @property
    def end(self) -> QPEnd:
        """The argument for the other end's `connect`."""
        return QPEnd(self.qp_num, int(self._config.psn), self._context.address)

    # ---- states --------------------------------------------------------------

    def modify(self, state: QPState, attr: QPAttr = AS_IT_IS) -> None:
        """Takes the queue pair to another state, or changes attributes in its present state.

        Raises LocalProtocolError, and changes nothing, when there is no such transition, or when
        an attribute is not allowed (`emu.rdma.attributes`), wrong or missing. RTR needs
        `dest_qp_num`, `rq_psn` and `dest_address`, except for datagrams. In ERR, all posted work
        requests complete with a flush error. RESET discards them, and completions that were not
        polled.
        """
        refuse_non_member(repr(self), "state", state, QPState)
        far = attr.dest_address  # its level is looked up before the NICs stop: it can take long
        level = self._context.service_level(far) if isinstance(far, int) else None
        with self._context.clock.frozen():
            self._refuse_step(state)
            self._refuse_attributes(state, attr.given())
            remote = self._remote(attr) if state is QPState.RTR else None
            self._set(attr, level)
            if remote:
                lib.qp_set_remote(self._core, remote)
            lib.verbs_modify(self.work, state, self._context.clock.now_ps)

    def to_init(self, attr: QPAttr = AS_IT_IS) -> None:
        self.modify(QPState.INIT, attr)

    def to_rtr(self, attr: QPAttr) -> None:
        self.modify(QPState.RTR, attr)

    def to_rts(self, attr: QPAttr = AS_IT_IS) -> None:
        self.modify(QPState.RTS, attr)

    def connect(self, other: QPEnd) -> None:
        """Takes the queue pair from RESET to RTS, with the other end's number, PSN and address."""
        self.to_init()
        self.to_rtr(QPAttr(dest_qp_num=other.qp_num, rq_psn=other.psn, dest_address=other.address))
        self.to_rts()

    def _refuse_step(self, state: QPState) -> None:
        if not lib.qp_may_modify(self._core, state):
            raise LocalProtocolError(
                f"{self}: there is no way from {self.qp_state.name} to {state.name}; the order is "
                "RESET, INIT, RTR, RTS"
            )

    def _refuse_attributes(self, state: QPState, given: dict[str, int]) -> None:
        taken = TAKEN.get((self.qp_state, state), {}).get(self.qp_type, set())
        not_settable = [name for name in given if name not in taken]
        if not_settable:
            raise LocalProtocolError(
                f"{self}: {', '.join(not_settable)} cannot be set in the step from "
                f"{self.qp_state.name} to {state.name}, which takes "
                f"{', '.join(sorted(taken)) or 'no attributes'}"
            )
        outstanding = range(self._context.max_qp_rd_atom + 1)
        reads = {"max_rd_atomic": outstanding, "max_dest_rd_atomic": outstanding}
        refuse_numbers(repr(self), given, {**LIMITS, **reads})
        self._refuse_path_mtu(given.get("path_mtu", 0))

    def _refuse_path_mtu(self, path_mtu: int) -> None:
        """Refuses a path MTU above the port's, for which drivers fail ibv_modify_qp with EINVAL."""
        active = self._context.active_mtu
        if path_mtu > active:
            raise LocalProtocolError(
                f"{self}: path_mtu={path_mtu}: the active_mtu of its port is {active}; take no "
                "more than that, or raise hosts.nic.mtu in the spec"
            )

    def _remote(self, attr: QPAttr) -> Any:
        """The `struct qp_remote` of the other end."""
        if self.qp_type is QPType.UD:
            return ffi.new("struct qp_remote *", {"address": self._context.address})
        missing = [name for name in REMOTE if getattr(attr, name) is None]
        if missing:
            raise LocalProtocolError(f"{self}: RTR needs {', '.join(missing)}")
        values = {field: getattr(attr, name) for name, field in REMOTE.items()}
        if not self._context.reaches(values["address"]):
            raise LocalProtocolError(
                f"{self}: dest_address={values['address']:#x} is no host's; take the other "
                "Context's address"
            )
        values["guid"] = self._context.guid_of(values["address"])
        return ffi.new("struct qp_remote *", values)

    def _set(self, attr: QPAttr, level: int | None) -> None:
        wanted = ffi.new("struct qp_config *", self._config[0])
        for name, value in attr.given().items():
            if name in SETTINGS:
                setattr(wanted, SETTINGS[name], value)
        if level is not None and attr.sl is None:
            wanted.sl = level
        if attr.qp_access_flags is not None:
            wanted.denied = _ALL_ACCESS & ~attr.qp_access_flags
        done = lib.qp_set_attributes(self._core, wanted)
        assert done, f"{self}: {attr} is right here and wrong in qp_lifecycle.c"
        self._config = wanted

    @property
    def owes_response(self) -> bool:
        """Whether the NIC has acknowledgements or data to send for packets that it has received."""
        return bool(lib.qp_owes_response(self._core))

    def destroy(self) -> None:
        """Removes the queue pair. Its work requests, and completions that were not polled, are
        discarded."""
        context = self._context
        with context.clock.frozen():
            lib.nic_remove_qp(context.core, self._core, context.clock.now_ps)
            context.free(self.work)

    # ---- work ------------------------------------------------------------------

    def post_send(self, wr: SendWR) -> None:
        """Raises LocalProtocolError, and has posted nothing, when that is not allowed."""
        clock = self._context.clock
        request, _pointed_at = _request(wr, repr(self))  # these live until they are copied
        if wr.ah is not None:
            request.sl = self._level_to(wr.ah.address)
        with clock.frozen():
            refused = lib.verbs_post_send(self.work, request, clock.now_ps)
            state = self.qp_state
        refuse_send(refused, repr(self), state, self.qp_type, self._rooms, wr)

    def _level_to(self, address: int) -> int:
        """The service level of the path record when the first datagram was sent there, as if its
        address handle was made then."""
        if address not in self._levels:
            self._levels[address] = self._context.service_level(address)
        return self._levels[address]

    def post_recv(self, wr: RecvWR) -> None:
        """Raises LocalProtocolError, and has posted nothing, when that is not allowed."""
        clock, sge = self._context.clock, wr.sge
        refuse_numbers(repr(self), wr.numbers())
        with clock.frozen():
            refused = lib.verbs_post_recv(self.work, wr.wr_id, elements(sge), 1, clock.now_ps)
        refuse_receive(refused, repr(self), self._rooms[1], wr)


def _request(wr: SendWR, subject: str) -> tuple[Any, Any]:
    """The C `struct send_request`, and what it points to."""
    refuse_non_member(subject, "opcode", wr.opcode, WROpcode)
    refuse_numbers(subject, wr.numbers())
    inlined = ffi.NULL if wr.inline is None else ffi.from_buffer("uint8_t[]", _inline(wr, subject))
    sges = elements(wr.sge)
    request = ffi.new(
        "struct send_request *",
        {
            "wr_id": wr.wr_id,
            "verb": wr.opcode,
            "unsignaled": not wr.signaled,
            "sges": sges,
            "sge_count": 1,
            "inlined": inlined,
            "inlined_bytes": 0 if wr.inline is None else len(inlined),
            "remote_addr": wr.remote_addr,
            "rkey": wr.rkey,
            "imm_data": wr.immediate,
            "compare_add": wr.compare_add,
            "swap": wr.swap,
            "is_datagram": wr.ah is not None,
            "remote_address": wr.ah.address if wr.ah else 0,
            "remote_qpn": wr.remote_qpn,
            "remote_qkey": wr.remote_qkey,
        },
    )
    return request, (inlined, sges)


def _inline(wr: SendWR, subject: str) -> bytes:
    if wr.sge != NOTHING:
        raise LocalProtocolError(
            f"{subject}: a message has its bytes inline or in sge, not in both"
        )
    if isinstance(wr.inline, np.ndarray) and not wr.inline.dtype.hasobject:
        return wr.inline.tobytes()
    if isinstance(wr.inline, bytes):
        return wr.inline
    raise LocalProtocolError(
        f"{subject}: inline={wr.inline!r} is neither bytes nor a numpy array of numbers"
    )
