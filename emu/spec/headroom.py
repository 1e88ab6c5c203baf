"""Headroom: the bytes that a lossless port must still store after it has decided to pause.

    the frame that reaches xoff                                   1 frame
    a frame that the port has just begun to send                  1 frame
    the pause frame itself                                        1 pause frame
    the pause frame's way, and the bytes on the cable             2 x cable delay
    the sender's response                                         response time
    the frame that the sender has begun                           1 frame

(IEEE 802.1Qbb, annex on buffer requirements.) The response time is the sender's `pause_response`.
A sender without one stops at once. Headroom then still includes the response time that 802.3
31B.3.7 allows, like SONiC's headroom tables, since senders on the real clock are somewhat late.

This is a bound in bytes on the cable. A buffer stores 24 bytes less of each packet (preamble, FCS
and gap), and only whole packets, so only large packets fill the headroom to within one packet. A
cut-through switch decides when the header has arrived and needs nearly one packet less; headroom
does not make use of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.spec.classes import PRIORITIES
from emu.units import PS_PER_S
from topologies.graph import Port

if TYPE_CHECKING:
    from emu.spec.scenario import Spec

PAUSE_FRAME = 64 + 20

HEADERS = 82
"""The most bytes of a packet besides its payload. On InfiniBand: LRH, GRH, BTH, RETH and two CRCs.
On Ethernet: the headers up to RETH with a VLAN tag, ICRC and FCS. The sum is the same."""

_RESPONSE_QUANTA = {
    1_000_000_000: 2,
    10_000_000_000: 67,
    25_000_000_000: 80,
    40_000_000_000: 118,
    50_000_000_000: 147,
    100_000_000_000: 394,
    200_000_000_000: 453,
    400_000_000_000: 905,
}
"""Link rate -> longest response time to a pause, in quanta. Faster links have the last value."""


def headroom_of(spec: Spec, port: Port) -> int:
    """The headroom of a switch's port per lossless priority, in bytes: as given, or computed.

    0 without PFC.
    """
    pfc = spec.given_port(port).pfc
    if pfc is None:
        return 0
    if pfc.headroom_bytes is not None:
        return pfc.headroom_bytes
    topology = spec.topology.build()
    cable, sender = topology.cable[port], topology.peer[port]
    response_ps = _response_ps(spec, sender)
    if response_ps is None:
        response_ps = -(-response_quanta(cable.rate_bps) * 512 * PS_PER_S // cable.rate_bps)
    return headroom_bytes(
        rate_bps=cable.rate_bps,
        delay_ps=cable.delay_ps,
        response_ps=response_ps,
        frame_bytes=spec.largest_frame_bytes,
    )


def _response_ps(spec: Spec, sender: Port) -> int | None:
    if sender.node in spec.topology.build().host:
        return spec.host(sender.node).nic.pause_response_ps
    return spec.given_port(sender).pause_response_ps


def reserved_of(spec: Spec, switch: str) -> int:
    """The bytes of a switch's buffer that are not in its shared pool."""
    ports = spec.topology.build().ports[switch]
    headroom = sum(
        headroom_of(spec, port) * len(set(pfc.priorities))
        for port in ports
        if (pfc := spec.given_port(port).pfc) is not None
    )
    return headroom + len(ports) * PRIORITIES * spec.given_switch(switch).reserved_bytes


def headroom_bytes(*, rate_bps: int, delay_ps: int, response_ps: int, frame_bytes: int) -> int:
    """The headroom of one port and priority. `delay_ps` is its cable's one-way delay; `frame_bytes`
    is the longest frame with preamble and gap."""
    still_coming = -(-(2 * delay_ps + response_ps) * rate_bps // (8 * PS_PER_S))
    return 3 * frame_bytes + PAUSE_FRAME + still_coming


def response_quanta(rate_bps: int) -> int:
    """The response time in quanta of the slowest listed rate that is at least `rate_bps`."""
    for rate, quanta in _RESPONSE_QUANTA.items():
        if rate >= rate_bps:
            return quanta
    return _RESPONSE_QUANTA[400_000_000_000]
