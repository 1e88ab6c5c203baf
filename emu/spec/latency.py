"""The latency of a switch without queues, for each fabric and speed.

    InfiniBand   up to FDR   170 ns    SX6036 (SwitchX-2)
                 EDR          90 ns    SB7800 (Switch-IB 2)
                 HDR         130 ns    QM8700 (Quantum)
                 NDR, XDR    150 ns    QM9700 (Quantum-2): resellers say less than 150 ns; NVIDIA
                                       names no figure, and one knowledge base says 330 ns
    Ethernet     any         600 ns    between Spectrum-2 (300 ns) and Trident 3 (from 800 ns);
                                       Trident II has 550 to 650 ns

The speed is that of the switch's fastest port. Vendors advertise these figures for one packet
through an idle switch, from its first bit in to its first bit out. Those for FDR, EDR and HDR are
well known, but were not compared with a copy of the data sheets.
"""

from __future__ import annotations

from emu.fabric_kind import Framing

_GBIT = 1_000_000_000
_INFINIBAND = (
    (60 * _GBIT, 170_000, "FDR: 170 ns, advertised for the SX6036"),
    (110 * _GBIT, 90_000, "EDR: 90 ns, advertised for the SB7800"),
    (210 * _GBIT, 130_000, "HDR: 130 ns, advertised for the QM8700"),
)
_FASTER = (150_000, "NDR and faster: resellers say less than 150 ns of the QM9700")
_ETHERNET = (
    600_000,
    "Ethernet: between 300 ns (Spectrum-2) and 800 ns (Trident 3) of data sheets",
)


def latency_of(framing: Framing, rate_bps: int) -> tuple[int, str]:
    """The latency in picoseconds of a switch whose fastest port has this rate, and its source."""
    if framing is Framing.ETHERNET:
        return _ETHERNET
    for most_bps, latency_ps, reason in _INFINIBAND:
        if rate_bps <= most_bps:
            return latency_ps, reason
    return _FASTER
