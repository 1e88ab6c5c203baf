"""One end of a lookup of a datagram service (IBTA vol 1, 12.11): SIDR_REQ out, SIDR_REP in, or the
other way round.

A SIDR_REQ is sent again until it is answered, up to 15 times.
"""

from __future__ import annotations

import errno
from enum import Enum, auto

from emu.errors import LocalProtocolError
from emu.verbs.cm.messages import Message, SidrRep, SidrReq, SidrStatus
from emu.verbs.cm.path import ANSWER_PS, NOTHING, ConnParam, Event, EventKind, Path, Send, Tell

_MOST_RETRIES = 15


class LookupState(Enum):
    IDLE = auto()
    ASKED = auto()
    """SIDR_REQ sent."""
    ASKING = auto()
    """SIDR_REQ received."""
    ANSWERED = auto()


class Lookup:
    """One end."""

    def __init__(self, local_id: int, path: Path, send: Send, tell: Tell) -> None:
        self.state = LookupState.IDLE
        self.local_id = local_id
        """The request ID, if this end asks."""
        self.path = path
        self.deadline_ps: int | None = None
        """When `expire` must be called."""
        self._send, self.tell = send, tell
        self._request: SidrReq | None = None
        self._reply: SidrRep | None = None
        self._retries = 0

    def ask(self, service_id: int, private_data: bytes, *, now_ps: int) -> None:
        """Asks for the queue pair of a service. The private data includes the IP header."""
        self._must_be(LookupState.IDLE)
        self._request = SidrReq(self.local_id, self.path.pkey, service_id, private_data)
        self.state = LookupState.ASKED
        self.deadline_ps = now_ps + ANSWER_PS
        self._send(self._request)

    def requested(self, request: Message, event: Event) -> None:
        """A SIDR_REQ has come. The program learns of it by `event`."""
        self._must_be(LookupState.IDLE)
        assert isinstance(request, SidrReq)
        self._request = request
        self.state = LookupState.ASKING
        self.tell(event)

    def answer(self, status: SidrStatus, param: ConnParam = NOTHING) -> None:
        """Answers it, with the number and Q_Key of a queue pair if the status is VALID."""
        self._must_be(LookupState.ASKING)
        assert self._request
        self._reply = SidrRep(
            self._request.request_id,
            status,
            param.qp_num,
            self._request.service_id,
            param.qkey,
            param.private_data,
        )
        self.state = LookupState.ANSWERED
        self._send(self._reply)

    def abandon(self, *, now_ps: int) -> None:
        """The program has ended, or wants no answer any more."""
        if self.state is LookupState.ASKING:
            self.answer(SidrStatus.REJECTED)
        self.deadline_ps = None

    def receive(self, message: Message, *, now_ps: int) -> None:
        """A message of the other end. One that does not fit the state is ignored."""
        if isinstance(message, SidrReq) and self._reply:
            self._send(self._reply)
        elif isinstance(message, SidrRep) and self.state is LookupState.ASKED:
            self._found(message)

    def _found(self, message: SidrRep) -> None:
        self._end()
        param = ConnParam(message.private_data, qp_num=message.qpn, qkey=message.qkey)
        kind = EventKind.ESTABLISHED if not message.status else EventKind.UNREACHABLE
        self.tell(Event(kind, message.status, param))

    def expire(self, *, now_ps: int) -> None:
        """The deadline has passed."""
        assert self._request
        if self._retries < _MOST_RETRIES:
            self._retries += 1
            self.deadline_ps = now_ps + ANSWER_PS
            self._send(self._request)
        else:
            self._end()
            self.tell(Event(EventKind.UNREACHABLE, -errno.ETIMEDOUT))

    def _must_be(self, state: LookupState) -> None:
        if self.state is not state:
            raise LocalProtocolError(f"the lookup is {self.state.name}, not {state.name}")

    def _end(self) -> None:
        self.state = LookupState.IDLE
        self.deadline_ps = None
