"""Connection managers of two hosts, joined by a wire that a test can cut, and known messages."""

from __future__ import annotations

from collections import deque
from functools import partial

from emu.verbs.cm.connection import Connection
from emu.verbs.cm.deadlines import Deadlines
from emu.verbs.cm.ip_service import Endpoint, IpHeader, PortSpace, service_id
from emu.verbs.cm.lookup import Lookup
from emu.verbs.cm.mad import Mad
from emu.verbs.cm.manager import Manager, Talk
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
    SidrRep,
    SidrReq,
    SidrStatus,
    Transport,
    parse,
)
from emu.verbs.cm.path import ConnParam, Event, EventKind, Path, Tell

CLIENT, SERVER = 0x0A000001, 0x0A000002
PORT = 7174
GIDS = {CLIENT: b"\x01" * 16, SERVER: b"\x02" * 16}

REQ = Req(
    local_id=0x11223344,
    service_id=service_id(PortSpace.TCP, PORT),
    ca_guid=0x0102030405060708,
    qpn=0x123456,
    psn=0xABCDEF,
    transport=Transport.UC,
    responder_resources=3,
    initiator_depth=5,
    response_timeout=20,
    flow_control=True,
    retry_count=6,
    rnr_retry_count=7,
    srq=True,
    pkey=0x8001,
    mtu=1024,
    local_lid=0x55,
    remote_lid=0x66,
    local_gid=GIDS[CLIENT],
    remote_gid=GIDS[SERVER],
    traffic_class=0x68,
    hop_limit=63,
    sl=4,
    rate=2,
    ack_timeout=19,
    private_data=IpHeader(Endpoint(CLIENT, 40_000), SERVER).build() + b"of the program".ljust(56),
)
REP = Rep(
    local_id=0x99,
    remote_id=0x11223344,
    qpn=0x654321,
    psn=0x13579B,
    responder_resources=4,
    initiator_depth=2,
    flow_control=True,
    rnr_retry_count=5,
    srq=True,
    ca_guid=0x1112131415161718,
    private_data=b"r" * 196,
    ack_delay=9,
)
MESSAGES: dict[str, Message] = {
    "REQ": REQ,
    "REP": REP,
    "RTU": Rtu(1, 2, b"u" * 224),
    "REJ": Rej(1, 2, Rejected.REP, Reason.TIMEOUT, b"j" * 148, b"a GUID!!"),
    "DREQ": Dreq(1, 2, 0x123456, b"d" * 220),
    "DREP": Drep(1, 2, b"e" * 224),
    "SIDR_REQ": SidrReq(7, 0x8001, service_id(PortSpace.UDP, PORT), b"s" * 216),
    "SIDR_REP": SidrRep(
        7, SidrStatus.NO_QP, 0x123456, service_id(PortSpace.UDP, PORT), 0x01234567, b"p" * 136
    ),
}


class Network:
    """Two hosts that reach each other."""

    def __init__(self, ip: int) -> None:
        self.ip, self.guid = ip, ip

    def service_level(self, address: int) -> int:
        return 0

    def path_to(self, address: int) -> Path:
        return Path(address, GIDS[self.ip], GIDS[address], 0, 0, mtu=4096, sl=0, pkey=0xFFFF)

    def path_back(self, request: Req | SidrReq, source: int) -> Path:
        return self.path_to(source)


class Server:
    """Listens at a port and keeps what comes."""

    def __init__(self, manager: Manager, space: PortSpace = PortSpace.TCP) -> None:
        self.source = Endpoint(0, PORT)
        self.is_full = False
        self.talks: list[Talk] = []
        self.events: list[Event] = []
        manager.ports.take(self, space, PORT)
        manager.ports.listen(self, space, PORT)

    def requested(self, talk: Talk) -> Tell:
        self.talks.append(talk)
        return self.events.append

    @property
    def connection(self) -> Connection:
        (talk,) = self.talks
        assert isinstance(talk, Connection)
        return talk

    @property
    def lookup(self) -> Lookup:
        (talk,) = self.talks
        assert isinstance(talk, Lookup)
        return talk


class Pair:
    """Both managers, and the datagrams between them."""

    def __init__(self) -> None:
        self.now_ps = 0
        self.deadlines = Deadlines()
        self.is_cut = False
        self.seen: list[Message | None] = []
        """What was sent, lost or not."""
        self._wire: deque[tuple[int, int, bytes]] = deque()
        self.client, self.server = (
            Manager(Network(ip), partial(self._send, ip), self.deadlines, seed=str(ip))
            for ip in (CLIENT, SERVER)
        )

    def _send(self, source: int, address: int, sl: int, packet: bytes) -> None:
        self.seen.append(parse(Mad.parse(packet)))
        if not self.is_cut:
            self._wire.append((source, address, packet))

    def deliver(self) -> None:
        """Lets all datagrams arrive, and the answers to them."""
        while self._wire:
            source, address, packet = self._wire.popleft()
            to = self.client if address == CLIENT else self.server
            to.receive(source, packet, now_ps=self.now_ps)

    def pass_deadline(self) -> None:
        """Lets time pass up to the next deadline."""
        assert self.deadlines.earliest_ps is not None
        self.now_ps = self.deadlines.earliest_ps
        self.deadlines.expire(self.now_ps)

    def connect(self, port: int = PORT) -> tuple[Connection, list[Event]]:
        """A connection that the client requests, and its events."""
        events: list[Event] = []
        made = self.client.connection(self.client.network.path_to(SERVER))  # type: ignore[attr-defined]
        made.tell = events.append
        header = IpHeader(Endpoint(CLIENT, 40_000), SERVER).build()
        param = ConnParam(header + b"hello", 3, 5, retry_count=6, rnr_retry_count=7, qp_num=0x11)
        service = service_id(PortSpace.TCP, port)
        made.connect(service, Transport.RC, param, now_ps=self.now_ps)
        self.client.changed(made)
        return made, events

    def connected(self) -> tuple[Connection, list[Event], Connection, list[Event]]:
        """An established connection: both ends and their events so far."""
        server = Server(self.server)
        active, events = self.connect()
        self.deliver()
        passive = server.connection
        passive.accept(ConnParam(b"welcome", 3, 5, qp_num=0x22), now_ps=self.now_ps)
        self.server.changed(passive)
        self.deliver()
        active.establish()
        self.client.changed(active)
        self.deliver()
        return active, events, passive, server.events

    def kinds_seen(self) -> list[str]:
        return [type(message).__name__.upper() for message in self.seen]


def kinds(events: list[Event]) -> list[EventKind]:
    return [event.kind for event in events]
