"""Fabric goodput: RDMA payload delivered per time.

    goodput = payload bytes in the receivers' memory x 8 / time of the trial

Headers, padding and what was sent again do not count, and neither do bytes between GPUs of one
server, which do not cross the fabric. The time is that of the whole trial, computation included.
The training draft calls the same figure aggregate throughput.
"""

from __future__ import annotations

from emu.bmwg.kpi import TERM, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.measure.records import FlowRecord
from emu.units import format_size, format_time_ns

GOODPUT = Kpi(
    "fabric_goodput",
    "fabric goodput (aggregate throughput)",
    Table.PRIMARY,
    Unit.BPS,
    "RDMA payload delivered / time, without headers and retransmissions.",
    TERM,
)
KPIS = (GOODPUT,)


def measured(trial: Trial) -> Measured:
    """The goodput of the whole fabric."""
    delivered = [delivered_bytes(flow) for flow in trial.fabric_flows()]
    known = [size for size in delivered if size is not None]
    if not delivered:
        yield Undefined(GOODPUT, "no RDMA crosses the fabric")
    elif len(known) < len(delivered):
        yield Undefined(GOODPUT, "for an unfinished flow the delivered bytes are not known")
    else:
        took = format_time_ns(trial.seconds * 1e9)
        yield Figure(
            GOODPUT,
            sum(known) * 8 / trial.seconds,
            detail=f"{format_size(sum(known))} of payload in {took}",
        )


def delivered_bytes(flow: FlowRecord) -> int | None:
    """Payload in the receiver's memory; None if it is not known."""
    return flow.bytes if flow.end_ns is not None else flow.delivered_bytes
