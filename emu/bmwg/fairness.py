"""Fairness among flows: Jain's index of the flows' rates (terminology draft).

    JFI = (sum x)^2 / (n sum x^2)    x: goodput of a flow, from its start to its end

It is of flows that compete all the time: the flows of a traffic entry that always have something to
send. The messages of a collective, a step or storage wait for each other, and paced messages for
their time, so their rates say nothing about shares of a link.
"""

from __future__ import annotations

from emu.bmwg.kpi import TERM, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.measure.fairness import jain_index
from emu.words import counted

JFI = Kpi(
    "jfi_flows",
    "Jain fairness index over flows (JFI)",
    Table.SECONDARY,
    Unit.RATIO,
    "(sum x)^2 / (n sum x^2), x the goodput of each flow of a traffic entry.",
    TERM,
)
KPIS = (JFI,)


def measured(trial: Trial) -> Measured:
    """The index of each entry."""
    run = trial.run
    for name in run.entries:
        flows = run.traffic.get(name, ())
        index = jain_index([flow.goodput_bps for flow in flows])
        if not all(flow.is_rdma for flow in flows):
            yield Undefined(JFI, "TCP carries it, and the fabric's KPIs are of RDMA", name)
        elif not all(run.sends_without_gaps(flow) for flow in flows):
            yield Undefined(JFI, "its flows do not always have something to send", name)
        elif len(flows) < 2:
            yield Undefined(JFI, "it has one flow", name)
        elif index is None:
            yield Undefined(JFI, "it delivered nothing", name)
        else:
            yield Figure(JFI, index, name, counted(len(flows), "flow"))
