"""How much a lossless port must still be able to take in after it has sent a pause.

    XOFF decided     for a frame that has come and would cross xoff   1 frame
                 ──▶ a frame of our own may just have begun           1 frame
                 ──▶ the pause frame itself                           1 pause frame
                 ──▶ it crosses the cable, what was on its way comes  2 x cable
                 ──▶ the sender takes its time to obey                response time
                 ──▶ and finishes the frame it has begun              1 frame

(IEEE 802.1Qbb, annex on buffer requirements.) The response time is the sender's
`pause_response`; where it has none it obeys at once, and headroom still allows for
as much as 802.3 31B.3.7 does, like SONiC's headroom tables: on the real clock
senders are somewhat late.

That is a bound in bytes on the cable. Whole packets come, of each of which a buffer
keeps 24 bytes less (preamble, FCS and gap), so that large packets alone fill it to
within one of them. A cut-through switch decides when a header is there, and needs
nearly one packet less; headroom does not count on that.
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
"""The most bytes that a packet has beside its payload. On InfiniBand: LRH, GRH, BTH, RETH and two
CRCs. On Ethernet: the headers up to RETH with a VLAN tag, ICRC and FCS, which are as many."""

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
"""Link rate -> quanta a sender may need before it obeys; faster links take the last."""


def headroom_of(spec: Spec, port: Port) -> int:
    """Bytes that a switch's port keeps for each lossless priority: as set, or as worked out.

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
    """Bytes of a switch's buffer that are not in its shared pool."""
    ports = spec.topology.build().ports[switch]
    headroom = sum(
        headroom_of(spec, port) * len(set(pfc.priorities))
        for port in ports
        if (pfc := spec.given_port(port).pfc) is not None
    )
    return headroom + len(ports) * PRIORITIES * spec.given_switch(switch).reserved_bytes


def headroom_bytes(*, rate_bps: int, delay_ps: int, response_ps: int, frame_bytes: int) -> int:
    """Of one port and priority; `delay_ps` of its cable one way, `frame_bytes` of the longest frame
    with preamble and gap."""
    still_coming = -(-(2 * delay_ps + response_ps) * rate_bps // (8 * PS_PER_S))
    return 3 * frame_bytes + PAUSE_FRAME + still_coming


def response_quanta(rate_bps: int) -> int:
    """The response time of the slowest listed rate that is at least `rate_bps`."""
    for rate, quanta in _RESPONSE_QUANTA.items():
        if rate >= rate_bps:
            return quanta
    return _RESPONSE_QUANTA[400_000_000_000]
