"""BTH opcodes, and the extension headers that follow each (IBTA vol 1, 9.2 and 9.3).

An opcode's top three bits are its transport class, its low five bits the operation.
The headers follow from two small tables: the headers that the class puts first, and
those that the operation adds:

    BTH [RDETH] [DETH] [XRCETH]     [FETH] [RETH | AtomicETH | AETH ...] [ImmDt | IETH]     payload
        `- by transport class -'    `- by operation ----------------------------------'

Values and headers are those of Linux (`include/rdma/ib_pack.h`,
`drivers/infiniband/sw/rxe/rxe_opcode.c`). XRC follows IBTA annex A14, but was not
checked against a capture.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Transport(IntEnum):
    """Transport class: the top three bits of an opcode."""

    RC = 0x00
    UC = 0x20
    RD = 0x40
    UD = 0x60
    CNP = 0x80
    XRC = 0xA0


class Opcode(IntEnum):
    """Every defined opcode, under the name that Linux and scapy give it."""

    RC_SEND_FIRST = 0x00
    RC_SEND_MIDDLE = 0x01
    RC_SEND_LAST = 0x02
    RC_SEND_LAST_WITH_IMMEDIATE = 0x03
    RC_SEND_ONLY = 0x04
    RC_SEND_ONLY_WITH_IMMEDIATE = 0x05
    RC_RDMA_WRITE_FIRST = 0x06
    RC_RDMA_WRITE_MIDDLE = 0x07
    RC_RDMA_WRITE_LAST = 0x08
    RC_RDMA_WRITE_LAST_WITH_IMMEDIATE = 0x09
    RC_RDMA_WRITE_ONLY = 0x0A
    RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE = 0x0B
    RC_RDMA_READ_REQUEST = 0x0C
    RC_RDMA_READ_RESPONSE_FIRST = 0x0D
    RC_RDMA_READ_RESPONSE_MIDDLE = 0x0E
    RC_RDMA_READ_RESPONSE_LAST = 0x0F
    RC_RDMA_READ_RESPONSE_ONLY = 0x10
    RC_ACKNOWLEDGE = 0x11
    RC_ATOMIC_ACKNOWLEDGE = 0x12
    RC_COMPARE_SWAP = 0x13
    RC_FETCH_ADD = 0x14
    RC_SEND_LAST_WITH_INVALIDATE = 0x16
    RC_SEND_ONLY_WITH_INVALIDATE = 0x17
    RC_FLUSH = 0x1C
    RC_ATOMIC_WRITE = 0x1D

    UC_SEND_FIRST = 0x20
    UC_SEND_MIDDLE = 0x21
    UC_SEND_LAST = 0x22
    UC_SEND_LAST_WITH_IMMEDIATE = 0x23
    UC_SEND_ONLY = 0x24
    UC_SEND_ONLY_WITH_IMMEDIATE = 0x25
    UC_RDMA_WRITE_FIRST = 0x26
    UC_RDMA_WRITE_MIDDLE = 0x27
    UC_RDMA_WRITE_LAST = 0x28
    UC_RDMA_WRITE_LAST_WITH_IMMEDIATE = 0x29
    UC_RDMA_WRITE_ONLY = 0x2A
    UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE = 0x2B

    RD_SEND_FIRST = 0x40
    RD_SEND_MIDDLE = 0x41
    RD_SEND_LAST = 0x42
    RD_SEND_LAST_WITH_IMMEDIATE = 0x43
    RD_SEND_ONLY = 0x44
    RD_SEND_ONLY_WITH_IMMEDIATE = 0x45
    RD_RDMA_WRITE_FIRST = 0x46
    RD_RDMA_WRITE_MIDDLE = 0x47
    RD_RDMA_WRITE_LAST = 0x48
    RD_RDMA_WRITE_LAST_WITH_IMMEDIATE = 0x49
    RD_RDMA_WRITE_ONLY = 0x4A
    RD_RDMA_WRITE_ONLY_WITH_IMMEDIATE = 0x4B
    RD_RDMA_READ_REQUEST = 0x4C
    RD_RDMA_READ_RESPONSE_FIRST = 0x4D
    RD_RDMA_READ_RESPONSE_MIDDLE = 0x4E
    RD_RDMA_READ_RESPONSE_LAST = 0x4F
    RD_RDMA_READ_RESPONSE_ONLY = 0x50
    RD_ACKNOWLEDGE = 0x51
    RD_ATOMIC_ACKNOWLEDGE = 0x52
    RD_COMPARE_SWAP = 0x53
    RD_FETCH_ADD = 0x54
    RD_RESYNC = 0x55
    RD_FLUSH = 0x5C
    RD_ATOMIC_WRITE = 0x5D

    UD_SEND_ONLY = 0x64
    UD_SEND_ONLY_WITH_IMMEDIATE = 0x65

    CNP = 0x81

    XRC_SEND_FIRST = 0xA0
    XRC_SEND_MIDDLE = 0xA1
    XRC_SEND_LAST = 0xA2
    XRC_SEND_LAST_WITH_IMMEDIATE = 0xA3
    XRC_SEND_ONLY = 0xA4
    XRC_SEND_ONLY_WITH_IMMEDIATE = 0xA5
    XRC_RDMA_WRITE_FIRST = 0xA6
    XRC_RDMA_WRITE_MIDDLE = 0xA7
    XRC_RDMA_WRITE_LAST = 0xA8
    XRC_RDMA_WRITE_LAST_WITH_IMMEDIATE = 0xA9
    XRC_RDMA_WRITE_ONLY = 0xAA
    XRC_RDMA_WRITE_ONLY_WITH_IMMEDIATE = 0xAB
    XRC_RDMA_READ_REQUEST = 0xAC
    XRC_RDMA_READ_RESPONSE_FIRST = 0xAD
    XRC_RDMA_READ_RESPONSE_MIDDLE = 0xAE
    XRC_RDMA_READ_RESPONSE_LAST = 0xAF
    XRC_RDMA_READ_RESPONSE_ONLY = 0xB0
    XRC_ACKNOWLEDGE = 0xB1
    XRC_ATOMIC_ACKNOWLEDGE = 0xB2
    XRC_COMPARE_SWAP = 0xB3
    XRC_FETCH_ADD = 0xB4
    XRC_SEND_LAST_WITH_INVALIDATE = 0xB6
    XRC_SEND_ONLY_WITH_INVALIDATE = 0xB7


class Extension(StrEnum):
    """A header between BTH and payload."""

    RDETH = "RDETH"
    DETH = "DETH"
    XRCETH = "XRCETH"
    RETH = "RETH"
    ATOMIC_ETH = "AtomicETH"
    AETH = "AETH"
    ATOMIC_ACK_ETH = "AtomicAckETH"
    IMM_DT = "ImmDt"
    IETH = "IETH"
    FETH = "FETH"
    CNP_RESERVED = "CNPReserved"
    """The 16 reserved bytes of a CNP (annex A17.9.3)."""


EXTENSION_BYTES: dict[Extension, int] = {
    Extension.RDETH: 4,
    Extension.DETH: 8,
    Extension.XRCETH: 4,
    Extension.RETH: 16,
    Extension.ATOMIC_ETH: 28,
    Extension.AETH: 4,
    Extension.ATOMIC_ACK_ETH: 8,
    Extension.IMM_DT: 4,
    Extension.IETH: 4,
    Extension.FETH: 4,
    Extension.CNP_RESERVED: 16,
}

BTH_BYTES = 12

OPERATION_MASK = 0x1F
TRANSPORT_MASK = 0xE0

ACKNOWLEDGE = 0x11
RDMA_READ_REQUEST = 0x0C
RESPONSES = frozenset(range(0x0D, 0x13))
"""Operations that a responder sends: READ responses and acknowledgements."""

_BY_OPERATION: dict[int, tuple[Extension, ...]] = {
    0x03: (Extension.IMM_DT,),
    0x05: (Extension.IMM_DT,),
    0x06: (Extension.RETH,),
    0x09: (Extension.IMM_DT,),
    0x0A: (Extension.RETH,),
    0x0B: (Extension.RETH, Extension.IMM_DT),
    0x0C: (Extension.RETH,),
    0x0D: (Extension.AETH,),
    0x0F: (Extension.AETH,),
    0x10: (Extension.AETH,),
    0x11: (Extension.AETH,),
    0x12: (Extension.AETH, Extension.ATOMIC_ACK_ETH),
    0x13: (Extension.ATOMIC_ETH,),
    0x14: (Extension.ATOMIC_ETH,),
    0x16: (Extension.IETH,),
    0x17: (Extension.IETH,),
    0x1C: (Extension.FETH, Extension.RETH),
    0x1D: (Extension.RETH,),
}

_REQUEST_PREFIX: dict[Transport, tuple[Extension, ...]] = {
    Transport.RD: (Extension.RDETH, Extension.DETH),
    Transport.UD: (Extension.DETH,),
    Transport.XRC: (Extension.XRCETH,),
}

_RESPONSE_PREFIX: dict[Transport, tuple[Extension, ...]] = {
    Transport.RD: (Extension.RDETH,),
}


def _extensions(opcode: Opcode) -> tuple[Extension, ...]:
    if opcode is Opcode.CNP:
        return (Extension.CNP_RESERVED,)
    transport = Transport(opcode & TRANSPORT_MASK)
    operation = opcode & OPERATION_MASK
    prefix = _RESPONSE_PREFIX if operation in RESPONSES else _REQUEST_PREFIX
    return prefix.get(transport, ()) + _BY_OPERATION.get(operation, ())


EXTENSIONS: dict[int, tuple[Extension, ...]] = {o: _extensions(o) for o in Opcode}
"""Opcode -> the headers after its BTH, in order. Undefined opcodes have no entry."""

OPCODE_NAMES: dict[int, str] = {int(o): o.name for o in Opcode}


def extension_offset(opcode: int, extension: Extension) -> int | None:
    """Bytes from the start of the BTH to that header; None if the opcode does not have it."""
    offset = BTH_BYTES
    for present in EXTENSIONS.get(opcode, ()):
        if present is extension:
            return offset
        offset += EXTENSION_BYTES[present]
    return None
