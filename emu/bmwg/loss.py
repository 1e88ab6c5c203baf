"""Loss, retransmission and order of packets.

    packet drop rate      packets dropped / packets sent, in ppm
    retransmission rate   packets that NICs sent again, per second
    out-of-order rate     packets that came with a PSN ahead of the expected one, per second

Packets sent are all RDMA packets of all NICs: data, ACKs and CNPs, and those sent again. A dropped
packet counts even if it was sent again later and arrived. The out-of-order rate is the receivers'
`out_of_sequence`: it counts packets behind a lost one, too.
"""

from __future__ import annotations

from emu.bmwg.kpi import TRAIN, Figure, Kpi, Measured, Table, Target, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.report.run_view import RunFacts

DROPS = Kpi(
    "packet_drop_rate",
    "packet drop rate",
    Table.PRIMARY,
    Unit.PPM,
    "Packets dropped by switches, links, faults and NICs / RDMA packets sent.",
    TRAIN,
    target=Target(0),
)
RETRANSMISSIONS = Kpi(
    "retransmission_rate",
    "RDMA retransmission rate",
    Table.SECONDARY,
    Unit.PER_S,
    "Packets that NICs sent again / time.",
    TRAIN,
)
OUT_OF_ORDER = Kpi(
    "out_of_order_rate",
    "out-of-order packet rate",
    Table.SECONDARY,
    Unit.PER_S,
    "Packets that arrived with a PSN ahead of the expected one / time.",
    TRAIN,
)
KPIS = (DROPS, RETRANSMISSIONS, OUT_OF_ORDER)


def measured(trial: Trial) -> Measured:
    """The rates of the whole fabric."""
    run = trial.run
    sent = run.total("packets")
    if not sent:
        yield from (Undefined(kpi, "no NIC sent an RDMA packet") for kpi in KPIS)
        return
    yield _drop_rate(run, sent)
    for kpi, packets in (
        (RETRANSMISSIONS, run.total("retransmitted_packets")),
        (OUT_OF_ORDER, trial.at_hosts("out_of_sequence")),
    ):
        yield Figure(kpi, packets / trial.seconds, detail=f"{packets:,} packets")


def _drop_rate(run: RunFacts, sent: int) -> Figure | Undefined:
    if not all(flow.is_rdma for flow in run.flows):
        return Undefined(DROPS, "switches count dropped packets of TCP and of RDMA together")
    dropped = dropped_packets(run)
    return Figure(DROPS, 1e6 * dropped / sent, detail=_parts(run, dropped, sent))


def dropped_packets(run: RunFacts) -> int:
    """Packets that switches, faults and NICs dropped."""
    return run.drops + run.dropped_by_faults + run.dropped_by_hosts


def _parts(run: RunFacts, dropped: int, sent: int) -> str:
    parts = f"{dropped:,} of {sent:,} packets"
    if run.dropped_by_faults:
        parts += f", {run.dropped_by_faults:,} of them by faults of the spec"
    return parts
