"""The messages of communication management (IBTA vol 1, 12.6 and 12.11), as values.

Offsets are those of the 232 bytes of data of a management datagram. Private data is shown with all
the bytes that the message has room for: no field tells how many are used.

Left out: MRA (an end that needs longer is simply asked again), alternate paths (LAP, APR), EE
contexts, and redirection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import ClassVar, Self

from emu.errors import RemoteProtocolError
from emu.verbs.cm.bit_fields import FLAG, BitFields, Kind, Place, at, octets, place
from emu.verbs.cm.mad import DATA_BYTES, Attribute, Mad

Gid = bytes
"""16 bytes."""

_MOST_CM_RETRIES = 15


class Reason(IntEnum):
    """Why a connection was rejected (IBTA vol 1, table 99)."""

    NO_QP = 1
    NO_RESOURCES = 3
    TIMEOUT = 4
    INVALID_COMMUNICATION_ID = 6
    INVALID_SERVICE_ID = 8
    INVALID_TRANSPORT = 9
    STALE_CONNECTION = 10
    CONSUMER = 28


class Rejected(IntEnum):
    """The message that a REJ answers."""

    REQ = 0
    REP = 1
    NONE = 2


class SidrStatus(IntEnum):
    """The answer to a lookup (IBTA vol 1, 12.11.2.4)."""

    VALID = 0
    UNSUPPORTED_SERVICE = 1
    REJECTED = 2
    NO_QP = 3


class Transport(IntEnum):
    """The transport service in a REQ."""

    RC = 0
    UC = 1


def _mtu_of(code: int) -> int:
    if not 1 <= code <= 5:
        raise RemoteProtocolError(f"a REQ with MTU code {code}, which has no meaning")
    return 128 << code


def _transport_of(code: int) -> Transport:
    if code not in set(Transport):
        raise RemoteProtocolError(f"a REQ for transport {code}, which is neither RC nor UC")
    return Transport(code)


_MTU = Kind(lambda mtu: (mtu // 128).bit_length() - 1, _mtu_of)
_TRANSPORT = Kind(int, _transport_of)
_GID = octets(16)


class _Message(BitFields):
    """A message of communication management."""

    attribute: ClassVar[Attribute]
    private_bytes: ClassVar[int]
    """The room for private data."""

    def __init_subclass__(cls) -> None:
        cls.private_bytes = DATA_BYTES - cls.private_at


@dataclass(frozen=True)
class Req(_Message):
    """A request for a connection."""

    attribute: ClassVar[Attribute] = Attribute.REQ
    private_at: ClassVar[int] = 140

    local_id: int = at(0, 32)
    service_id: int = at(8, 64)
    ca_guid: int = at(16, 64)
    qpn: int = at(32, 24)
    psn: int = at(44, 24)
    transport: Transport = at(43, 2, bit=5, kind=_TRANSPORT)
    responder_resources: int = at(35, 8)
    """The most READs and atomics that the sender answers at a time."""
    initiator_depth: int = at(39, 8)
    """The most READs and atomics that the sender has outstanding."""
    response_timeout: int = at(43, 5)
    """How long either end may take to answer: 4.096 us times 2 to this power."""
    flow_control: bool = at(43, 1, bit=7, kind=FLAG)
    retry_count: int = at(47, 3, bit=5)
    rnr_retry_count: int = at(50, 3, bit=5)
    srq: bool = at(51, 1, bit=4, kind=FLAG)
    pkey: int = at(48, 16)
    mtu: int = at(50, 4, kind=_MTU)
    """Bytes."""
    local_lid: int = at(52, 16)
    remote_lid: int = at(54, 16)
    local_gid: Gid = at(56, 128, kind=_GID)
    remote_gid: Gid = at(72, 128, kind=_GID)
    traffic_class: int = at(92, 8)
    hop_limit: int = at(93, 8)
    sl: int = at(94, 4)
    rate: int = at(91, 6, bit=2)
    """The code of a static rate."""
    ack_timeout: int = at(95, 5)
    private_data: bytes = b""
    qkey: int = at(28, 32, default=0)
    max_cm_retries: int = at(51, 4, default=_MOST_CM_RETRIES)

    def implied(self) -> Iterator[tuple[Place, int]]:
        """The time for which this end may take to answer, and that both are in one subnet."""
        yield place(47, 5), self.response_timeout
        yield place(94, 1, bit=4), 1


@dataclass(frozen=True)
class Rep(_Message):
    """The answer to a REQ: the connection is accepted."""

    attribute: ClassVar[Attribute] = Attribute.REP
    private_at: ClassVar[int] = 36

    local_id: int = at(0, 32)
    remote_id: int = at(4, 32)
    qpn: int = at(12, 24)
    psn: int = at(20, 24)
    responder_resources: int = at(24, 8)
    initiator_depth: int = at(25, 8)
    flow_control: bool = at(26, 1, bit=7, kind=FLAG)
    rnr_retry_count: int = at(27, 3)
    srq: bool = at(27, 1, bit=3, kind=FLAG)
    ca_guid: int = at(28, 64)
    private_data: bytes = b""
    qkey: int = at(8, 32, default=0)
    ack_delay: int = at(26, 5, default=0)


@dataclass(frozen=True)
class Rtu(_Message):
    """The connection is ready to use: it answers a REP."""

    attribute: ClassVar[Attribute] = Attribute.RTU
    private_at: ClassVar[int] = 8

    local_id: int = at(0, 32)
    remote_id: int = at(4, 32)
    private_data: bytes = b""


@dataclass(frozen=True)
class Dreq(_Message):
    """A request to end the connection."""

    attribute: ClassVar[Attribute] = Attribute.DREQ
    private_at: ClassVar[int] = 12

    local_id: int = at(0, 32)
    remote_id: int = at(4, 32)
    remote_qpn: int = at(8, 24)
    private_data: bytes = b""


@dataclass(frozen=True)
class Drep(Rtu):
    """The answer to a DREQ."""

    attribute: ClassVar[Attribute] = Attribute.DREP


@dataclass(frozen=True)
class Rej(_Message):
    """A connection is refused, or the attempt given up."""

    attribute: ClassVar[Attribute] = Attribute.REJ
    private_at: ClassVar[int] = 84

    local_id: int = at(0, 32)
    """0 when the sender of the REJ knows no such connection."""
    remote_id: int = at(4, 32)
    rejected: int = at(8, 2)
    """Rejected, or another number from elsewhere."""
    reason: int = at(10, 16)
    """Reason, or another number from elsewhere."""
    private_data: bytes = b""
    info: bytes = at(12, 8 * 72, kind=octets(72), default=b"")
    """Additional information. Of TIMEOUT, the GUID of the sender, whose peer may not be known."""

    @classmethod
    def parse(cls, data: bytes) -> Self:
        whole = super().parse(data)
        return replace(whole, info=whole.info[: data[_REJ_LENGTH.first // 8] >> 1])

    def implied(self) -> Iterator[tuple[Place, int]]:
        """The length of the information."""
        yield _REJ_LENGTH, len(self.info)


_REJ_LENGTH = place(9, 7)


@dataclass(frozen=True)
class SidrReq(_Message):
    """A lookup of the queue pair that provides a datagram service."""

    attribute: ClassVar[Attribute] = Attribute.SIDR_REQ
    private_at: ClassVar[int] = 16

    request_id: int = at(0, 32)
    pkey: int = at(4, 16)
    service_id: int = at(8, 64)
    private_data: bytes = b""


@dataclass(frozen=True)
class SidrRep(_Message):
    """The answer to a lookup."""

    attribute: ClassVar[Attribute] = Attribute.SIDR_REP
    private_at: ClassVar[int] = 96

    request_id: int = at(0, 32)
    status: int = at(4, 8)
    """SidrStatus, or another number from elsewhere."""
    qpn: int = at(8, 24)
    service_id: int = at(12, 64)
    qkey: int = at(20, 32)
    private_data: bytes = b""


Message = Req | Rep | Rtu | Rej | Dreq | Drep | SidrReq | SidrRep

_KINDS: dict[Attribute, type[Message]] = {
    kind.attribute: kind for kind in (Req, Rep, Rtu, Rej, Dreq, Drep, SidrReq, SidrRep)
}


def parse(mad: Mad) -> Message | None:
    """The message in a datagram; None for one that is not understood here (MRA).

    Raises RemoteProtocolError for fields without a meaning."""
    kind = _KINDS.get(mad.attribute)
    return kind.parse(mad.data) if kind else None


def build(message: Message, transaction: int) -> bytes:
    """The datagram of a message."""
    return Mad(message.attribute, transaction, message.build()).build()
