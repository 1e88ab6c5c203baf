"""All connections and lookups of a host: datagrams in, datagrams out.

REQ, SIDR_REQ ─▶ service ID ─▶ who listens? ─ nobody ─▶ REJ, SIDR_REP
                                    └─▶ a new connection or lookup, for the listener
other messages ─▶ communication ID ─▶ the connection or lookup
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Protocol

from emu.errors import RemoteProtocolError
from emu.verbs.cm.connection import Connection, State
from emu.verbs.cm.deadlines import Deadlines
from emu.verbs.cm.ip_service import HEADER_BYTES, Endpoint, IpHeader, PortSpace, service_of
from emu.verbs.cm.lookup import Lookup
from emu.verbs.cm.mad import Mad
from emu.verbs.cm.messages import (
    Drep,
    Dreq,
    Message,
    Reason,
    Rej,
    Rejected,
    Rep,
    Req,
    SidrRep,
    SidrReq,
    SidrStatus,
    build,
    parse,
)
from emu.verbs.cm.path import ConnParam, Event, EventKind, Path, Tell
from emu.verbs.cm.ports import Ports

Talk = Connection | Lookup
"""What two ends have with each other."""

_Key = tuple[int, type[Message], int]
"""Of a request: the address of the NIC that sent it, its kind, the ID of that end."""

_NOBODY_LISTENS = Reason.INVALID_SERVICE_ID, SidrStatus.UNSUPPORTED_SERVICE
_IS_FULL = Reason.CONSUMER, SidrStatus.REJECTED
"""As Linux answers what its listeners do not take."""

SendPacket = Callable[[int, int, bytes], None]
"""Sends a datagram to the address of a NIC, with a service level."""


class Listener(Protocol):
    """Who listens at a port."""

    source: Endpoint

    @property
    def is_full(self) -> bool:
        """Whether it takes no more now."""

    def requested(self, talk: Talk) -> Tell:
        """Takes a new connection or lookup. Returns who gets its events."""


class Network(Protocol):
    """What a host knows of its place in the fabric."""

    guid: int
    ip: int

    def path_back(self, request: Req | SidrReq, source: int) -> Path:
        """The way to the sender of a request, whose NIC has the address `source`."""

    def service_level(self, address: int) -> int:
        """Of packets to that NIC."""


class Manager:
    """The connection manager of a host."""

    def __init__(self, network: Network, send: SendPacket, deadlines: Deadlines, seed: str) -> None:
        """`seed`: of the PSNs of connections."""
        self.network = network
        self.ports: Ports[Listener] = Ports()
        self._send = send
        self._psns = Random(seed)
        self._last_id = 0
        self._talks: dict[int, Talk] = {}
        """By the ID of this end."""
        self._transactions: dict[int, int] = {}
        self._received: dict[_Key, Talk] = {}
        self._keys: dict[int, _Key] = {}
        self._forgotten: set[int] = set()
        """IDs of those whose program has no use for them any more."""
        self._deadlines = deadlines

    # ---- for programs --------------------------------------------------------------

    def connection(self, path: Path) -> Connection:
        """A new connection, which is not requested yet."""
        number = self._new_id()
        made = Connection(
            number,
            self.network.guid,
            self._psns.getrandbits(24),
            path,
            partial(self._send_for, number),
            _ignore,
        )
        self._talks[number] = made
        return made

    def lookup(self, path: Path) -> Lookup:
        """A new lookup, which is not asked yet."""
        number = self._new_id()
        made = Lookup(number, path, partial(self._send_for, number), _ignore)
        self._talks[number] = made
        return made

    def changed(self, talk: Talk) -> None:
        """The program has called a function of it."""
        number = talk.local_id
        if number not in self._talks:
            return
        if number in self._forgotten and _is_over(talk):
            self._drop(number)
        else:
            self._deadlines.set((self, number), talk.deadline_ps, partial(self._expire, talk))

    def forget(self, talk: Talk, *, now_ps: int) -> None:
        """The program has no use for it any more. It is ended in an orderly way."""
        talk.tell = _ignore
        self._forgotten.add(talk.local_id)
        talk.abandon(now_ps=now_ps)
        self.changed(talk)

    # ---- packets and time ------------------------------------------------------------

    def receive(self, source: int, packet: bytes, *, now_ps: int) -> None:
        """A datagram of the NIC that has this address. What is not understood is ignored."""
        try:
            mad = Mad.parse(packet)
            message = parse(mad)
        except RemoteProtocolError:
            return
        if isinstance(message, Req | SidrReq):
            self._requested(message, source, mad.transaction, now_ps)
        elif message is not None:
            self._answered(message, source, mad.transaction, now_ps)

    def _expire(self, talk: Talk, now_ps: int) -> None:
        talk.expire(now_ps=now_ps)
        self.changed(talk)

    # ---- messages ----------------------------------------------------------------------

    def _requested(self, request: Req | SidrReq, source: int, transaction: int, now: int) -> None:
        number = request.local_id if isinstance(request, Req) else request.request_id
        key = source, type(request), number
        if known := self._received.get(key):
            known.receive(request, now_ps=now)
            self.changed(known)
            return
        path = self.network.path_back(request, source)
        found = self._listener(request)
        if found is None:
            self._refuse(request, path, transaction, *_NOBODY_LISTENS)
            return
        listener, event = found
        if listener.is_full:
            self._refuse(request, path, transaction, *_IS_FULL)
            return
        talk = self.connection(path) if isinstance(request, Req) else self.lookup(path)
        self._received[key] = talk
        self._keys[talk.local_id] = key
        self._transactions[talk.local_id] = transaction
        talk.tell = listener.requested(talk)
        talk.requested(request, event)

    def _listener(self, request: Req | SidrReq) -> tuple[Listener, Event] | None:
        """Who listens for it, and what to tell."""
        service = service_of(request.service_id)
        wanted = PortSpace.TCP if isinstance(request, Req) else PortSpace.UDP
        try:
            addresses = IpHeader.parse(request.private_data)
        except RemoteProtocolError:
            return None
        if service is None or service[0] is not wanted:
            return None
        listener = self.ports.listener(*service)
        own = Endpoint(addresses.destination_ip, service[1])
        if listener is None or listener.source.ip not in (0, own.ip) or own.ip != self.network.ip:
            return None
        param = Connection.param_of(request) if isinstance(request, Req) else ConnParam()
        event = Event(
            EventKind.CONNECT_REQUEST,
            param=replace(param, private_data=request.private_data[HEADER_BYTES:]),
            source=own,
            destination=addresses.source,
        )
        return listener, event

    def _refuse(
        self,
        request: Req | SidrReq,
        path: Path,
        transaction: int,
        reason: Reason,
        status: SidrStatus,
    ) -> None:
        answer: Message
        if isinstance(request, Req):
            answer = Rej(0, request.local_id, Rejected.REQ, reason)
        else:
            answer = SidrRep(request.request_id, status, 0, request.service_id, 0)
        self._send(path.address, path.sl, build(answer, transaction))

    def _answered(self, message: Message, source: int, transaction: int, now: int) -> None:
        talk = self._talk_of(message, source)
        if talk is None:
            if isinstance(message, Dreq):
                self._agree_to_end(message, source, transaction)
            return
        if isinstance(message, Dreq):
            self._transactions[talk.local_id] = transaction
        talk.receive(message, now_ps=now)
        self.changed(talk)

    def _talk_of(self, message: Message, source: int) -> Talk | None:
        if isinstance(message, Req | SidrReq):
            return None
        if isinstance(message, Rej) and message.remote_id == 0:
            return self._received.get((source, Req, message.local_id))
        number = message.request_id if isinstance(message, SidrRep) else message.remote_id
        talk = self._talks.get(number)
        if talk is None or talk.path.address != source:
            return None
        if isinstance(talk, Lookup) or isinstance(message, SidrRep):
            return talk if isinstance(talk, Lookup) and isinstance(message, SidrRep) else None
        is_first = isinstance(message, Rep) or talk.remote_id == 0
        return talk if is_first or message.local_id == talk.remote_id else None

    def _agree_to_end(self, request: Dreq, source: int, transaction: int) -> None:
        """The other end has not heard that this one has ended, which has forgotten it."""
        answer = Drep(request.remote_id, request.local_id)
        self._send(source, self.network.service_level(source), build(answer, transaction))

    # ---- numbers --------------------------------------------------------------------------

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _send_for(self, number: int, message: Message) -> None:
        path = self._talks[number].path
        transaction = self._transactions.setdefault(number, number)
        self._send(path.address, path.sl, build(message, transaction))

    def _drop(self, number: int) -> None:
        del self._talks[number]
        self._forgotten.discard(number)
        self._deadlines.set((self, number), None, _never)
        self._transactions.pop(number, None)
        if key := self._keys.pop(number, None):
            del self._received[key]


def _is_over(talk: Talk) -> bool:
    if isinstance(talk, Lookup):
        return talk.deadline_ps is None
    return talk.state in (State.IDLE, State.TIMEWAIT)


def _ignore(event: Event) -> None:
    """Nobody wants to know."""


def _never(now_ps: int) -> None:
    """Nothing is due."""
