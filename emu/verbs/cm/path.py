"""What both ends of a connection know of each other and of the way between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from emu.verbs.cm.ip_service import Endpoint
from emu.verbs.cm.messages import Message

PS_PER_UNIT = 4_096_000
"""Times of IBTA are 4.096 us times 2 to the power of a code of 5 bits."""
PACKET_LIFETIME = 18
"""The code of the longest time that a packet is on its way, as Linux assumes it on RoCE and OpenSM
reports it on InfiniBand: 1.07 s."""
RESPONSE_TIMEOUT = 20
"""The code of the longest time that an end takes to answer, as Linux has it: 4.3 s."""


def duration_ps(code: int) -> int:
    """The time that a code means."""
    return PS_PER_UNIT << code


ANSWER_PS = duration_ps(RESPONSE_TIMEOUT) + 2 * duration_ps(PACKET_LIFETIME)
"""A message that was not answered by then is sent again."""
TIMEWAIT_PS = 2 * duration_ps(PACKET_LIFETIME)
"""By then no packet of an ended connection is on its way (IBTA vol 1, 12.9.8.4)."""


@dataclass(frozen=True)
class Path:
    """The way from one end to the other."""

    address: int
    """IPv4 address or LID of the other end's NIC."""
    local_gid: bytes
    remote_gid: bytes
    local_lid: int
    remote_lid: int
    """0 on RoCE, as the local one."""
    mtu: int
    """Bytes."""
    sl: int
    pkey: int
    traffic_class: int = 0
    hop_limit: int = 64
    ack_timeout: int = PACKET_LIFETIME + 1


class EventKind(IntEnum):
    """The events of programs, by the numbers of enum rdma_cm_event_type."""

    ADDR_RESOLVED = 0
    ADDR_ERROR = 1
    ROUTE_RESOLVED = 2
    ROUTE_ERROR = 3
    CONNECT_REQUEST = 4
    CONNECT_RESPONSE = 5
    CONNECT_ERROR = 6
    UNREACHABLE = 7
    REJECTED = 8
    ESTABLISHED = 9
    DISCONNECTED = 10
    TIMEWAIT_EXIT = 15


@dataclass(frozen=True)
class ConnParam:
    """Of a connection, by the names of struct rdma_conn_param; of a datagram service, by those of
    struct rdma_ud_param."""

    private_data: bytes = b""
    responder_resources: int = 0
    initiator_depth: int = 0
    flow_control: bool = False
    retry_count: int = 0
    rnr_retry_count: int = 0
    srq: bool = False
    qp_num: int = 0
    qkey: int = 0


NOTHING = ConnParam()


@dataclass(frozen=True)
class Event:
    """What one end tells its program. `status`: a negative errno, the reason of a rejection, or
    0."""

    kind: EventKind
    status: int = 0
    param: ConnParam = NOTHING
    source: Endpoint | None = None
    """Of a request: this end, ..."""
    destination: Endpoint | None = None
    """... and the end that sent it."""


Send = Callable[[Message], None]
Tell = Callable[[Event], None]
