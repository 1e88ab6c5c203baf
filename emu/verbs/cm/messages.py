"""The messages of communication management (IBTA vol 1, 12.6 and 12.11), as values.

Offsets are those of the 232 bytes of data of a management datagram. Private data is shown with all
the bytes that the message has room for: no field tells how many are used.

Left out: MRA (an end that needs longer is simply asked again), alternate paths (LAP, APR), EE
contexts, and redirection.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import ClassVar, Self

from emu.errors import RemoteProtocolError
from emu.verbs.cm.mad import DATA_BYTES, Attribute, Mad

Gid = bytes
"""16 bytes."""

_MOST_CM_RETRIES = 15
_PERMISSIVE_FLOW_LABEL = 0


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


@dataclass(frozen=True)
class Req:
    """A request for a connection."""

    # 0 id | 8 service | 16 GUID | 28 Q_Key | 32 QPN, resources | 36 EECN, depth |
    # 40 EECN, timeout, transport, flow control | 44 PSN, timeout, retries | 48 P_Key |
    # 50 MTU, RNR retries | 51 CM retries, SRQ | 52 LIDs | 56 GIDs | 88 flow label, rate |
    # 92 class, hops, SL, ACK timeout | 96 the alternate path | 140 private data
    _fixed: ClassVar[Struct] = Struct("!I4xQQ4xIIIIIHBBHH16s16sIBBBB")
    _private_at: ClassVar[int] = 140
    attribute: ClassVar[Attribute] = Attribute.REQ
    private_bytes: ClassVar[int] = DATA_BYTES - _private_at

    local_id: int
    service_id: int
    ca_guid: int
    qpn: int
    psn: int
    transport: Transport
    responder_resources: int
    """The most READs and atomics that the sender answers at a time."""
    initiator_depth: int
    """The most READs and atomics that the sender has outstanding."""
    response_timeout: int
    """How long either end may take to answer: 4.096 us times 2 to this power."""
    flow_control: bool
    retry_count: int
    rnr_retry_count: int
    srq: bool
    pkey: int
    mtu: int
    """Bytes."""
    local_lid: int
    remote_lid: int
    local_gid: Gid
    remote_gid: Gid
    traffic_class: int
    hop_limit: int
    sl: int
    rate: int
    """The code of a static rate."""
    ack_timeout: int
    private_data: bytes = b""
    qkey: int = 0
    max_cm_retries: int = _MOST_CM_RETRIES

    @classmethod
    def parse(cls, data: bytes) -> Self:
        (
            local_id,
            service_id,
            ca_guid,
            qkey,
            qpn,
            depth,
            timeout,
            psn,
            pkey,
            mtu,
            retries,
            local_lid,
            remote_lid,
            local_gid,
            remote_gid,
            rate,
            traffic_class,
            hop_limit,
            sl,
            ack_timeout,
        ) = cls._fixed.unpack_from(data)
        transport = timeout >> 1 & 3
        if transport not in set(Transport) or not 1 <= mtu >> 4 <= 5:
            raise RemoteProtocolError(f"a REQ for transport {transport} with MTU code {mtu >> 4}")
        return cls(
            local_id=local_id,
            service_id=service_id,
            ca_guid=ca_guid,
            qkey=qkey,
            qpn=qpn >> 8,
            responder_resources=qpn & 0xFF,
            initiator_depth=depth & 0xFF,
            response_timeout=timeout >> 3 & 0x1F,
            transport=Transport(transport),
            flow_control=bool(timeout & 1),
            psn=psn >> 8,
            retry_count=psn & 7,
            pkey=pkey,
            mtu=128 << (mtu >> 4),
            rnr_retry_count=mtu & 7,
            max_cm_retries=retries >> 4,
            srq=bool(retries & 8),
            local_lid=local_lid,
            remote_lid=remote_lid,
            local_gid=local_gid,
            remote_gid=remote_gid,
            rate=rate & 0x3F,
            traffic_class=traffic_class,
            hop_limit=hop_limit,
            sl=sl >> 4,
            ack_timeout=ack_timeout >> 3,
            private_data=data[cls._private_at :],
        )

    def build(self) -> bytes:
        mtu_code = (self.mtu // 128).bit_length() - 1
        subnet_local = 1
        fixed = self._fixed.pack(
            self.local_id,
            self.service_id,
            self.ca_guid,
            self.qkey,
            self.qpn << 8 | self.responder_resources,
            self.initiator_depth,
            self.response_timeout << 3 | self.transport << 1 | self.flow_control,
            self.psn << 8 | self.response_timeout << 3 | self.retry_count,
            self.pkey,
            mtu_code << 4 | self.rnr_retry_count,
            self.max_cm_retries << 4 | self.srq << 3,
            self.local_lid,
            self.remote_lid,
            self.local_gid,
            self.remote_gid,
            _PERMISSIVE_FLOW_LABEL << 12 | self.rate,
            self.traffic_class,
            self.hop_limit,
            self.sl << 4 | subnet_local << 3,
            self.ack_timeout << 3,
        )
        return fixed.ljust(self._private_at, b"\0") + self.private_data


@dataclass(frozen=True)
class Rep:
    """The answer to a REQ: the connection is accepted."""

    # 0 ids | 8 Q_Key | 12 QPN | 16 EECN | 20 PSN | 24 resources, depth |
    # 26 ACK delay, flow control | 27 RNR retries, SRQ | 28 GUID | 36 private data
    _fixed: ClassVar[Struct] = Struct("!IIIIIIBBBBQ")
    attribute: ClassVar[Attribute] = Attribute.REP
    private_bytes: ClassVar[int] = DATA_BYTES - _fixed.size

    local_id: int
    remote_id: int
    qpn: int
    psn: int
    responder_resources: int
    initiator_depth: int
    flow_control: bool
    rnr_retry_count: int
    srq: bool
    ca_guid: int
    private_data: bytes = b""
    qkey: int = 0
    ack_delay: int = 0

    @classmethod
    def parse(cls, data: bytes) -> Self:
        local_id, remote_id, qkey, qpn, _, psn, resources, depth, delay, retries, guid = (
            cls._fixed.unpack_from(data)
        )
        return cls(
            local_id=local_id,
            remote_id=remote_id,
            qkey=qkey,
            qpn=qpn >> 8,
            psn=psn >> 8,
            responder_resources=resources,
            initiator_depth=depth,
            ack_delay=delay >> 3,
            flow_control=bool(delay & 1),
            rnr_retry_count=retries >> 5,
            srq=bool(retries & 0x10),
            ca_guid=guid,
            private_data=data[cls._fixed.size :],
        )

    def build(self) -> bytes:
        fixed = self._fixed.pack(
            self.local_id,
            self.remote_id,
            self.qkey,
            self.qpn << 8,
            0,
            self.psn << 8,
            self.responder_resources,
            self.initiator_depth,
            self.ack_delay << 3 | self.flow_control,
            self.rnr_retry_count << 5 | self.srq << 4,
            self.ca_guid,
        )
        return fixed + self.private_data


_IDS = Struct("!II")


@dataclass(frozen=True)
class _Pair:
    """A message of the two communication IDs and private data."""

    attribute: ClassVar[Attribute]
    private_bytes: ClassVar[int] = DATA_BYTES - _IDS.size

    local_id: int
    remote_id: int
    private_data: bytes = b""

    @classmethod
    def parse(cls, data: bytes) -> Self:
        local_id, remote_id = _IDS.unpack_from(data)
        return cls(local_id, remote_id, data[_IDS.size :])

    def build(self) -> bytes:
        return _IDS.pack(self.local_id, self.remote_id) + self.private_data


@dataclass(frozen=True)
class Rtu(_Pair):
    """The connection is ready to use: it answers a REP."""

    attribute: ClassVar[Attribute] = Attribute.RTU


@dataclass(frozen=True)
class Drep(_Pair):
    """The answer to a DREQ."""

    attribute: ClassVar[Attribute] = Attribute.DREP


@dataclass(frozen=True)
class Dreq:
    """A request to end the connection."""

    _fixed: ClassVar[Struct] = Struct("!III")
    attribute: ClassVar[Attribute] = Attribute.DREQ
    private_bytes: ClassVar[int] = DATA_BYTES - _fixed.size

    local_id: int
    remote_id: int
    remote_qpn: int
    private_data: bytes = b""

    @classmethod
    def parse(cls, data: bytes) -> Self:
        local_id, remote_id, qpn = cls._fixed.unpack_from(data)
        return cls(local_id, remote_id, qpn >> 8, data[cls._fixed.size :])

    def build(self) -> bytes:
        fixed = self._fixed.pack(self.local_id, self.remote_id, self.remote_qpn << 8)
        return fixed + self.private_data


@dataclass(frozen=True)
class Rej:
    """A connection is refused, or the attempt given up."""

    # 0 ids | 8 message | 9 length of the additional information | 10 reason | 12 that information |
    # 84 private data
    _fixed: ClassVar[Struct] = Struct("!IIBBH72s")
    attribute: ClassVar[Attribute] = Attribute.REJ
    private_bytes: ClassVar[int] = DATA_BYTES - _fixed.size

    local_id: int
    """0 when the sender of the REJ knows no such connection."""
    remote_id: int
    rejected: int
    """Rejected, or another number from elsewhere."""
    reason: int
    """Reason, or another number from elsewhere."""
    private_data: bytes = b""
    info: bytes = b""
    """Additional information. Of TIMEOUT, the GUID of the sender, whose peer may not be known."""

    @classmethod
    def parse(cls, data: bytes) -> Self:
        local_id, remote_id, rejected, length, reason, info = cls._fixed.unpack_from(data)
        private = data[cls._fixed.size :]
        return cls(local_id, remote_id, rejected >> 6, reason, private, info[: length >> 1])

    def build(self) -> bytes:
        fixed = self._fixed.pack(
            self.local_id,
            self.remote_id,
            self.rejected << 6,
            len(self.info) << 1,
            self.reason,
            self.info,
        )
        return fixed + self.private_data


@dataclass(frozen=True)
class SidrReq:
    """A lookup of the queue pair that provides a datagram service."""

    _fixed: ClassVar[Struct] = Struct("!IH2xQ")
    attribute: ClassVar[Attribute] = Attribute.SIDR_REQ
    private_bytes: ClassVar[int] = DATA_BYTES - _fixed.size

    request_id: int
    pkey: int
    service_id: int
    private_data: bytes = b""

    @classmethod
    def parse(cls, data: bytes) -> Self:
        request_id, pkey, service_id = cls._fixed.unpack_from(data)
        return cls(request_id, pkey, service_id, data[cls._fixed.size :])

    def build(self) -> bytes:
        return self._fixed.pack(self.request_id, self.pkey, self.service_id) + self.private_data


@dataclass(frozen=True)
class SidrRep:
    """The answer to a lookup."""

    # 0 request | 4 status, length of the additional information | 8 QPN | 12 service | 20 Q_Key |
    # 24 that information | 96 private data
    _fixed: ClassVar[Struct] = Struct("!IBB2xIQI72s")
    attribute: ClassVar[Attribute] = Attribute.SIDR_REP
    private_bytes: ClassVar[int] = DATA_BYTES - _fixed.size

    request_id: int
    status: int
    """SidrStatus, or another number from elsewhere."""
    qpn: int
    service_id: int
    qkey: int
    private_data: bytes = b""

    @classmethod
    def parse(cls, data: bytes) -> Self:
        request_id, status, _, qpn, service_id, qkey, _ = cls._fixed.unpack_from(data)
        return cls(request_id, status, qpn >> 8, service_id, qkey, data[cls._fixed.size :])

    def build(self) -> bytes:
        fixed = self._fixed.pack(
            self.request_id, self.status, 0, self.qpn << 8, self.service_id, self.qkey, b""
        )
        return fixed + self.private_data


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
