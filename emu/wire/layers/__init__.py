"""scapy layers for RoCE and InfiniBand, including those that `scapy.contrib.roce` lacks.

    from emu.wire.layers import *

    RoCEv2     Ether / IP or IPv6 / UDP / BTH / extension headers / payload
    RoCEv1     Ether / GRH / BTH / ...
    native IB  LRH / [GRH] / BTH / ...         FlowControl
    IPoIB      ... / BTH / DETH / IPoIB / IP
    pause      pfc({3: 0xFFFF})
    CNP        IP(tos=48 << 2) / UDP() / cnp(dest_qp)

Building computes pad, lengths, ICRC, VCRC and LPCRC unless they are given. UDP under a BTH
defaults to destination port 4791, source port 49152 and checksum 0, as NICs send it.

Together with `scapy.contrib.roce`, the BTH and GRH of this package are tried first, for
any order of imports and any UDP source port. Once this package is imported, every
dissected packet has its layers. scapy's own classes still build packets as before.
"""

from __future__ import annotations

from scapy.layers.inet import UDP
from scapy.layers.l2 import CookedLinux, Dot1Q, Ether
from scapy.packet import Packet, bind_bottom_up, bind_top_down

from emu.wire.layers.ipoib import IPoIB
from emu.wire.layers.link import GRH, GRH_NEXT_HEADER_BTH, LNH_NAMES, LRH, FlowControl
from emu.wire.layers.pause import PAUSE_MAC, pfc
from emu.wire.layers.transport import (
    AETH,
    BTH,
    DETH,
    FETH,
    IETH,
    RDETH,
    RETH,
    XRCETH,
    AtomicAckETH,
    AtomicETH,
    CNPReserved,
    ImmDt,
    cnp,
)
from emu.wire.opcodes import Opcode

__all__ = [
    "AETH",
    "BTH",
    "DETH",
    "FETH",
    "GRH",
    "IETH",
    "LNH_NAMES",
    "LRH",
    "PAUSE_MAC",
    "RDETH",
    "RETH",
    "XRCETH",
    "AtomicAckETH",
    "AtomicETH",
    "CNPReserved",
    "FlowControl",
    "IPoIB",
    "ImmDt",
    "Opcode",
    "cnp",
    "pfc",
]

ROCE_V2_PORT = 4791
ROCE_V1_ETHERTYPE = 0x8915
_LOWEST_SOURCE_PORT = 0xC000


def _bind_first(lower: type[Packet], upper: type[Packet], **fields: int) -> None:
    """Dissects `upper` on top of `lower`, and tries it before the layers bound earlier."""
    bind_bottom_up(lower, upper, **fields)
    lower.payload_guess = lower.payload_guess[-1:] + lower.payload_guess[:-1]


_bind_first(UDP, BTH, dport=ROCE_V2_PORT)
bind_top_down(UDP, BTH, dport=ROCE_V2_PORT, sport=_LOWEST_SOURCE_PORT, chksum=0)

for _carrier in (Ether, Dot1Q):
    _bind_first(_carrier, GRH, type=ROCE_V1_ETHERTYPE)
    bind_top_down(_carrier, GRH, type=ROCE_V1_ETHERTYPE)
_bind_first(CookedLinux, GRH, proto=ROCE_V1_ETHERTYPE)

_bind_first(LRH, BTH, lnh=2)
bind_top_down(LRH, BTH, lnh=2)
_bind_first(LRH, GRH, lnh=3)
bind_top_down(LRH, GRH, lnh=3)
_bind_first(GRH, BTH, nxthdr=GRH_NEXT_HEADER_BTH)
bind_top_down(GRH, BTH, nxthdr=GRH_NEXT_HEADER_BTH)
