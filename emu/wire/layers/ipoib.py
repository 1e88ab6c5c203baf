"""IP over InfiniBand (RFC 4391): 4 bytes between a datagram's headers and the IP packet.

    | ethertype 16 | reserved 16 |

No field of a packet says that this header follows: hosts agree on the queue pair. A datagram
is treated as IPoIB when it begins with an ethertype that IPoIB carries and two zero bytes. No
management datagram begins like that.

    LRH(slid=1, dlid=2) / BTH(opcode=Opcode.UD_SEND_ONLY, dest_qp=17) \\
        / DETH(q_key=0xB1B, src_qp=17) / IPoIB() / IP(dst="10.0.0.2") / ICMP()
"""
# ruff: noqa: RUF012 - a list is how scapy wants its fields

from __future__ import annotations

from scapy.fields import XShortEnumField, XShortField
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP
from scapy.packet import bind_layers

from emu.wire.layers.header import Header

CARRIED = {0x0800: "IPv4", 0x0806: "ARP", 0x86DD: "IPv6"}


class IPoIB(Header):
    """The encapsulation header."""

    name = "IPoIB"
    size = 4
    fields_desc = [XShortEnumField("proto", 0x0800, CARRIED), XShortField("reserved", 0)]


def is_ipoib(payload: bytes) -> bool:
    """Whether a datagram's payload begins like an IPoIB header."""
    return int.from_bytes(payload[:2], "big") in CARRIED and payload[2:4] == bytes(2)


for _ethertype, _layer in ((0x0800, IP), (0x0806, ARP), (0x86DD, IPv6)):
    bind_layers(IPoIB, _layer, proto=_ethertype)
