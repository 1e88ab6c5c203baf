"""How much a lossless port must still be able to take in after it has sent a pause.

    XOFF decided ──▶ a frame of our own may just have begun           1 frame
                 ──▶ the pause frame itself                           1 pause frame
                 ──▶ it crosses the cable, what was on its way comes  2 x cable
                 ──▶ the sender takes its time to obey                response time
                 ──▶ and finishes the frame it has begun              1 frame

(IEEE 802.1Qbb, annex on buffer requirements; the response times are those of
802.3 31B.3.7, which SONiC's headroom tables use as well.) Rounded up to a frame
more, because a switch counts a frame when it is whole.
"""

from __future__ import annotations

from emu.spec.scenario import Spec
from emu.units import PS_PER_S

ETHERNET_OVERHEAD = 24
"""Preamble, start delimiter, FCS and inter-frame gap, in bytes."""
HEADERS = 14 + 20 + 8 + 12 + 16 + 4
"""Ethernet, IPv4, UDP, BTH, RETH and ICRC of the longest data packet, in bytes."""
PAUSE_FRAME = 64 + 20
QUANTUM_BYTES = 64

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


def headroom_of(spec: Spec, switch: str) -> int:
    """Bytes per port and lossless priority of a switch: as set, or the most that any port needs.

    0 without PFC.
    """
    pfc = spec.switch(switch).pfc
    if pfc is None:
        return 0
    if pfc.headroom_bytes is not None:
        return pfc.headroom_bytes
    topology = spec.topology.build()
    cables = (topology.cable[port] for port in topology.ports[switch])
    return max(
        headroom_bytes(rate_bps=cable.rate_bps, delay_ps=cable.delay_ps, mtu=spec.largest_mtu)
        for cable in cables
    )


def headroom_bytes(*, rate_bps: int, delay_ps: int, mtu: int) -> int:
    """Of one port and priority; `delay_ps` of its cable one way, `mtu` in bytes of payload."""
    frame = mtu + HEADERS + ETHERNET_OVERHEAD
    round_trip = -(-2 * delay_ps * rate_bps // (8 * PS_PER_S))
    return 3 * frame + PAUSE_FRAME + round_trip + response_quanta(rate_bps) * QUANTUM_BYTES


def response_quanta(rate_bps: int) -> int:
    """The response time of the slowest listed rate that is at least `rate_bps`."""
    for rate, quanta in _RESPONSE_QUANTA.items():
        if rate >= rate_bps:
            return quanta
    return _RESPONSE_QUANTA[400_000_000_000]
