"""One end of a connection (IBTA vol 1, 12.9): messages and calls in, messages and events out.

    active    IDLE ─connect─▶ REQ_SENT ─REP─▶ REP_RCVD ─establish─▶ ESTABLISHED
    passive   REQ ─▶ REQ_RCVD ─accept─▶ REP_SENT ─RTU─▶ ESTABLISHED
    both      ESTABLISHED ─disconnect─▶ DREQ_SENT ─DREP─▶ TIMEWAIT ─time─▶ IDLE
              ESTABLISHED ─DREQ─▶ DREQ_RCVD ─disconnect─▶ TIMEWAIT

A REQ, REP or DREQ is sent again until it is answered, up to 15 times; then the end gives up. The
answer to a message that comes again is sent again.

As on Linux, the program's disconnect answers a DREQ, or its end does. Left out: MRA, loading of
alternate paths, and peer-to-peer connections (two REQs that meet).
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from emu.errors import LocalProtocolError
from emu.verbs.cm.messages import (
    Drep,
    Dreq,
    Message,
    Reason,
    Rej,
    Rejected,
    Rep,
    Req,
    Rtu,
    Transport,
)
from emu.verbs.cm.path import (
    ANSWER_PS,
    RESPONSE_TIMEOUT,
    TIMEWAIT_PS,
    ConnParam,
    Event,
    EventKind,
    Path,
    Send,
    Tell,
)

_MOST_RETRIES = 15


class State(Enum):
    """The states of IBTA vol 1, 12.9.7 and 12.9.8, without those of MRA and alternate paths."""

    IDLE = auto()
    REQ_SENT = auto()
    REQ_RCVD = auto()
    REP_SENT = auto()
    REP_RCVD = auto()
    ESTABLISHED = auto()
    DREQ_SENT = auto()
    DREQ_RCVD = auto()
    TIMEWAIT = auto()


@dataclass(frozen=True)
class Agreed:
    """What queue pairs need to be connected, once the other end is known."""

    path: Path
    remote_qpn: int
    psn: int
    """The first that this end sends."""
    remote_psn: int
    responder_resources: int
    initiator_depth: int
    retry_count: int
    rnr_retry_count: int
    min_rnr_timer: int = 0


class Connection:
    """One end. Knows nothing about NICs, programs or clocks."""

    def __init__(
        self, local_id: int, ca_guid: int, psn: int, path: Path, send: Send, tell: Tell
    ) -> None:
        """`psn`: the first that this end's queue pair sends. `send` takes messages for the other
        end, `tell` takes events for the program."""
        self.state = State.IDLE
        self.local_id = local_id
        self.remote_id = 0
        self.path = path
        self.deadline_ps: int | None = None
        """When `expire` must be called."""
        self._ca_guid, self._psn = ca_guid, psn
        self._send, self.tell = send, tell
        self._request: Req | None = None
        self._reply: Rep | None = None
        self._is_active = False
        self._unanswered: Message | None = None
        self._retries = 0

    @property
    def request(self) -> Req:
        """The REQ that was sent or received."""
        assert self._request
        return self._request

    # ---- calls of the program ----------------------------------------------------

    def connect(
        self, service_id: int, transport: Transport, param: ConnParam, *, now_ps: int
    ) -> None:
        """Sends a REQ. The private data includes the IP header."""
        self._must_be(State.IDLE)
        path = self.path
        self._request = Req(
            local_id=self.local_id,
            service_id=service_id,
            ca_guid=self._ca_guid,
            qpn=param.qp_num,
            psn=self._psn,
            transport=transport,
            responder_resources=param.responder_resources,
            initiator_depth=param.initiator_depth,
            response_timeout=RESPONSE_TIMEOUT,
            flow_control=param.flow_control,
            retry_count=param.retry_count,
            rnr_retry_count=param.rnr_retry_count,
            srq=param.srq,
            pkey=path.pkey,
            mtu=path.mtu,
            local_lid=path.local_lid,
            remote_lid=path.remote_lid,
            local_gid=path.local_gid,
            remote_gid=path.remote_gid,
            traffic_class=path.traffic_class,
            hop_limit=path.hop_limit,
            sl=path.sl,
            rate=0,
            ack_timeout=path.ack_timeout,
            private_data=param.private_data,
        )
        self._is_active = True
        self._await_answer(State.REQ_SENT, self._request, now_ps)

    def accept(self, param: ConnParam, *, now_ps: int) -> None:
        """Sends a REP."""
        self._must_be(State.REQ_RCVD)
        self._reply = Rep(
            local_id=self.local_id,
            remote_id=self.remote_id,
            qpn=param.qp_num,
            psn=self._psn,
            responder_resources=param.responder_resources,
            initiator_depth=param.initiator_depth,
            flow_control=param.flow_control,
            rnr_retry_count=param.rnr_retry_count,
            srq=param.srq,
            ca_guid=self._ca_guid,
            private_data=param.private_data,
        )
        self._await_answer(State.REP_SENT, self._reply, now_ps)

    def reject(self, private_data: bytes, reason: Reason = Reason.CONSUMER) -> None:
        """Sends a REJ, before the connection is established."""
        answers = {State.REQ_RCVD: Rejected.REQ, State.REP_RCVD: Rejected.REP}
        self._must_be(*answers)
        self._refuse(answers[self.state], reason, private_data)

    def establish(self) -> None:
        """Sends an RTU: the queue pair is ready."""
        self._must_be(State.REP_RCVD)
        self._become(State.ESTABLISHED)
        self._ready_to_use()

    def disconnect(self, *, now_ps: int) -> None:
        """Sends a DREQ, or the answer to that of the other end. Does nothing to a connection that
        has ended, or never began, as on Linux."""
        if self.state is State.DREQ_RCVD:
            self._ended(now_ps)
        elif self.state in (State.ESTABLISHED, State.REP_SENT):
            request = Dreq(self.local_id, self.remote_id, self.agreed.remote_qpn)
            self._await_answer(State.DREQ_SENT, request, now_ps)

    def abandon(self, *, now_ps: int) -> None:
        """The program has ended, or wants the connection no more."""
        if self.state in (State.ESTABLISHED, State.DREQ_RCVD):
            self.disconnect(now_ps=now_ps)
        elif self.state is State.REQ_SENT:
            self._refuse(Rejected.REQ, Reason.TIMEOUT)
        elif self.state is State.REQ_RCVD:
            self._refuse(Rejected.REQ, Reason.CONSUMER)
        elif self.state in (State.REP_SENT, State.REP_RCVD):
            self._refuse(Rejected.REP, Reason.CONSUMER)

    @property
    def agreed(self) -> Agreed:
        """Raises LocalProtocolError before the other end's queue pair is known."""
        far = self._reply if self._is_active else self._request
        if far is None:
            raise LocalProtocolError("the other end of the connection is not known yet")
        return Agreed(
            self.path,
            remote_qpn=far.qpn,
            psn=self._psn,
            remote_psn=far.psn,
            responder_resources=far.initiator_depth,
            initiator_depth=far.responder_resources,
            retry_count=self.request.retry_count,
            rnr_retry_count=far.rnr_retry_count,
        )

    # ---- messages and time ---------------------------------------------------------

    def requested(self, request: Message, event: Event) -> None:
        """A REQ has come. The program learns of it by `event`."""
        self._must_be(State.IDLE)
        assert isinstance(request, Req)
        self._request = request
        self.remote_id = request.local_id
        self._become(State.REQ_RCVD)
        self.tell(event)

    def receive(self, message: Message, *, now_ps: int) -> None:
        """A message of the other end. One that does not fit the state is ignored."""
        if action := self._ACTIONS.get((self.state, type(message))):
            action(self, message, now_ps)

    def expire(self, *, now_ps: int) -> None:
        """The deadline has passed."""
        if self.state is State.TIMEWAIT:
            self._become(State.IDLE)
            self.tell(Event(EventKind.TIMEWAIT_EXIT))
        elif self._unanswered and self._retries < _MOST_RETRIES:
            self._retries += 1
            self.deadline_ps = now_ps + ANSWER_PS
            self._send(self._unanswered)
        elif self.state is State.DREQ_SENT:
            self._wait_for_late_packets(now_ps)
            self.tell(Event(EventKind.DISCONNECTED, -errno.ETIMEDOUT))
        else:
            rejected = Rejected.REQ if self.state is State.REQ_SENT else Rejected.REP
            self._refuse(rejected, Reason.TIMEOUT)
            self.tell(Event(EventKind.UNREACHABLE, -errno.ETIMEDOUT))

    # ---- what messages do ----------------------------------------------------------

    def _replied(self, message: Message, now_ps: int) -> None:
        assert isinstance(message, Rep)
        self._reply = message
        self.remote_id = message.local_id
        self._become(State.REP_RCVD)
        self.tell(Event(EventKind.CONNECT_RESPONSE, 0, self.param_of(message)))

    def _request_again(self, message: Message, now_ps: int) -> None:
        assert self._reply
        self._send(self._reply)

    def _reply_again(self, message: Message, now_ps: int) -> None:
        self._ready_to_use()

    def _is_ready(self, message: Message, now_ps: int) -> None:
        assert isinstance(message, Rtu)
        self._become(State.ESTABLISHED)
        self.tell(Event(EventKind.ESTABLISHED, 0, ConnParam(message.private_data)))

    def _rejected(self, message: Message, now_ps: int) -> None:
        assert isinstance(message, Rej)
        self._become(State.IDLE)
        self.tell(Event(EventKind.REJECTED, message.reason, ConnParam(message.private_data)))

    def _asked_to_end(self, message: Message, now_ps: int) -> None:
        self._become(State.DREQ_RCVD)
        self.tell(Event(EventKind.DISCONNECTED))

    def _both_end(self, message: Message, now_ps: int) -> None:
        self._ended(now_ps)
        self.tell(Event(EventKind.DISCONNECTED))

    def _end_agreed(self, message: Message, now_ps: int) -> None:
        self._wait_for_late_packets(now_ps)
        self.tell(Event(EventKind.DISCONNECTED))

    def _asked_again_to_end(self, message: Message, now_ps: int) -> None:
        self._send(Drep(self.local_id, self.remote_id))

    _ACTIONS: ClassVar[
        dict[tuple[State, type[Message]], Callable[[Connection, Message, int], None]]
    ] = {
        (State.REQ_SENT, Rep): _replied,
        (State.REQ_SENT, Rej): _rejected,
        (State.REQ_RCVD, Rej): _rejected,
        (State.REP_SENT, Req): _request_again,
        (State.REP_SENT, Rtu): _is_ready,
        (State.REP_SENT, Rej): _rejected,
        (State.REP_SENT, Dreq): _asked_to_end,
        (State.REP_RCVD, Rej): _rejected,
        (State.REP_RCVD, Dreq): _asked_to_end,
        (State.ESTABLISHED, Rep): _reply_again,
        (State.ESTABLISHED, Dreq): _asked_to_end,
        (State.DREQ_SENT, Dreq): _both_end,
        (State.DREQ_SENT, Drep): _end_agreed,
        (State.TIMEWAIT, Dreq): _asked_again_to_end,
    }
    """A pair that is absent is ignored."""

    # ---- steps -----------------------------------------------------------------------

    @staticmethod
    def param_of(message: Req | Rep) -> ConnParam:
        """What the program learns of the other end's message. The other end's depth is the most
        that this end must answer."""
        retries = message.retry_count if isinstance(message, Req) else 0
        return ConnParam(
            private_data=message.private_data,
            responder_resources=message.initiator_depth,
            initiator_depth=message.responder_resources,
            flow_control=message.flow_control,
            retry_count=retries,
            rnr_retry_count=message.rnr_retry_count,
            srq=message.srq,
            qp_num=message.qpn,
        )

    def _must_be(self, *states: State) -> None:
        if self.state not in states:
            allowed = " or ".join(state.name for state in states)
            raise LocalProtocolError(f"the connection is in {self.state.name}, not in {allowed}")

    def _become(self, state: State) -> None:
        self.state = state
        self._unanswered, self._retries, self.deadline_ps = None, 0, None

    def _await_answer(self, state: State, message: Message, now_ps: int) -> None:
        self._become(state)
        self._unanswered = message
        self.deadline_ps = now_ps + ANSWER_PS
        self._send(message)

    def _refuse(self, rejected: Rejected, reason: Reason, private_data: bytes = b"") -> None:
        self._become(State.IDLE)
        info = self._ca_guid.to_bytes(8) if reason is Reason.TIMEOUT else b""
        self._send(Rej(self.local_id, self.remote_id, rejected, reason, private_data, info))

    def _ready_to_use(self) -> None:
        self._send(Rtu(self.local_id, self.remote_id))

    def _ended(self, now_ps: int) -> None:
        self._send(Drep(self.local_id, self.remote_id))
        self._wait_for_late_packets(now_ps)

    def _wait_for_late_packets(self, now_ps: int) -> None:
        self._become(State.TIMEWAIT)
        self.deadline_ps = now_ps + TIMEWAIT_PS
