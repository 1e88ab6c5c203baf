"""Queue pairs: made, taken through their states, and given work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emu._core import ffi, lib
from emu.errors import LocalProtocolError
from emu.rdma.completion import CQ
from emu.rdma.memory import PD
from emu.rdma.names import QPState, QPType
from emu.rdma.refusal import refuse_receive, refuse_send
from emu.rdma.srq import SRQ
from emu.rdma.work import RecvWR, SendWR
from traffic.rnic.config import have


@dataclass(frozen=True)
class QPAttr:
    """What `modify` may change. None: as the host's NIC has it in the spec, or as it is."""

    dest_qp_num: int | None = None
    rq_psn: int | None = None
    """The PSN that the other end begins with."""
    dest_address: int | None = None
    """The other host's `Context.address`."""
    sq_psn: int | None = None
    path_mtu: int | None = None
    """Bytes of payload."""
    timeout: int | None = None
    """4.096 us times 2 to this power; 0: never."""
    retry_cnt: int | None = None
    rnr_retry: int | None = None
    """7: for ever."""
    min_rnr_timer: int | None = None
    max_rd_atomic: int | None = None
    qkey: int | None = None


_FIELDS = {
    "sq_psn": "psn",
    "path_mtu": "mtu",
    "timeout": "timeout",
    "retry_cnt": "retry_count",
    "rnr_retry": "rnr_retry",
    "min_rnr_timer": "min_rnr_timer",
    "max_rd_atomic": "max_rd_atomic",
    "qkey": "qkey",
}
"""Attributes, and where they are in a `struct qp_config`."""


@dataclass(frozen=True)
class QPEnd:
    """What the other end must know to connect."""

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
        srq: SRQ | None,
    ) -> None:
        if srq is not None and srq.pd is not pd:
            raise LocalProtocolError(f"{pd.context.name}: the SRQ is of another protection domain")
        context = self._context = pd.context
        self.pd, self.qp_type = pd, qp_type
        self._rooms = max_send_wr, 0 if srq else max_recv_wr
        self._config = context.qp_config(qp_type, pd.handle, srq.core if srq else None)
        with context.clock.standing():
            self._core = context.add_qp(self._config)
            work = lib.verbs_qp_new(self._core, scq.core, rcq.core, *self._rooms)
        self._work = context.keep(have(work, "a queue pair"), lib.verbs_qp_free)

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
        """For the other end's `connect`."""
        return QPEnd(self.qp_num, int(self._config.psn), self._context.address)

    # ---- states --------------------------------------------------------------

    def modify(self, state: QPState, attr: QPAttr = QPAttr()) -> None:
        """Takes the queue pair into another state, or into the one it is in.

        Raises LocalProtocolError, and has changed nothing, when there is no such
        step, an attribute is wrong, or one is missing: RTR needs `dest_qp_num`, `rq_psn`
        and `dest_address`, but for datagrams.
        """
        with self._context.clock.standing():
            self._refuse_step(state)
            remote = self._remote(attr) if state is QPState.RTR else None
            if _has_settings(attr) or remote:
                self._set(attr)
            if remote:
                lib.qp_set_remote(self._core, remote)
            lib.qp_modify(self._core, state, self._context.clock.now_ps)

    def to_init(self, attr: QPAttr = QPAttr()) -> None:
        self.modify(QPState.INIT, attr)

    def to_rtr(self, attr: QPAttr) -> None:
        self.modify(QPState.RTR, attr)

    def to_rts(self, attr: QPAttr = QPAttr()) -> None:
        self.modify(QPState.RTS, attr)

    def connect(self, other: QPEnd) -> None:
        """From RESET to RTS, with the other end's number, PSN and address."""
        self.to_init()
        self.to_rtr(QPAttr(dest_qp_num=other.qp_num, rq_psn=other.psn, dest_address=other.address))
        self.to_rts()

    def _refuse_step(self, state: QPState) -> None:
        if not lib.qp_may_modify(self._core, state):
            raise LocalProtocolError(
                f"{self}: there is no way from {self.qp_state.name} to {state.name}; the order is "
                "RESET, INIT, RTR, RTS"
            )

    def _remote(self, attr: QPAttr) -> Any:
        """The `struct qp_remote`."""
        if self.qp_type is QPType.UD:
            return ffi.new("struct qp_remote *", {"address": self._context.address})
        needed = {"dest_qp_num": "qpn", "rq_psn": "psn", "dest_address": "address"}
        missing = [name for name in needed if getattr(attr, name) is None]
        if missing:
            raise LocalProtocolError(f"{self}: RTR needs {', '.join(missing)}")
        values = {field: getattr(attr, name) for name, field in needed.items()}
        values["guid"] = self._context.guid_of(values["address"])
        return ffi.new("struct qp_remote *", values)

    def _set(self, attr: QPAttr) -> None:
        wanted = ffi.new("struct qp_config *", self._config[0])
        for name, field in _FIELDS.items():
            if (value := getattr(attr, name)) is not None:
                setattr(wanted, field, value)
        if attr.dest_address is not None:
            wanted.sl = self._context.service_level(attr.dest_address)
        if not lib.qp_set_attributes(self._core, wanted):
            raise LocalProtocolError(
                f"{self}: not to be set in {self.qp_state.name}, or out of range: {attr}"
            )
        self._config = wanted

    # ---- work ------------------------------------------------------------------

    def post_send(self, wr: SendWR) -> None:
        """Raises LocalProtocolError, and has posted nothing, when that may not be."""
        clock = self._context.clock
        with clock.standing():
            refused = lib.verbs_post_send(self._work, _request(wr), clock.now_ps)
            state = self.qp_state
        refuse_send(refused, repr(self), state, self.qp_type, self._rooms[0], wr)

    def post_recv(self, wr: RecvWR) -> None:
        """Raises LocalProtocolError, and has posted nothing, when that may not be."""
        clock, sge = self._context.clock, wr.sge
        with clock.standing():
            refused = lib.verbs_post_recv(
                self._work, wr.wr_id, sge.addr, sge.length, sge.lkey, clock.now_ps
            )
        refuse_receive(refused, repr(self), self._rooms[1], wr)


def _has_settings(attr: QPAttr) -> bool:
    return any(getattr(attr, name) is not None for name in _FIELDS)


def _request(wr: SendWR) -> Any:
    """The C `struct send_request`."""
    return ffi.new(
        "struct send_request *",
        {
            "wr_id": wr.wr_id,
            "verb": wr.opcode,
            "unsignaled": not wr.signaled,
            "addr": wr.sge.addr,
            "length": wr.sge.length,
            "lkey": wr.sge.lkey,
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
