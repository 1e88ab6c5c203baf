"""All families of KPIs, in the order of the drafts' tables. A new family is a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emu.bmwg import (
    balance,
    collectives,
    convergence,
    failover,
    fairness,
    flow_control,
    goodput,
    health,
    inference,
    interference,
    jct,
    latency,
    loss,
    marking,
    queues,
)
from emu.bmwg.kpi import Figure, Kpi, Measured, Undefined
from emu.bmwg.trial import Trial


@dataclass(frozen=True)
class Family:
    """KPIs that one file computes."""

    kpis: tuple[Kpi, ...]
    measured: Callable[[Trial], Measured]
    """Gives, for each of the KPIs, a figure or the reason why there is none."""


FAMILIES = tuple(
    Family(module.KPIS, module.measured)
    for module in (
        jct,
        collectives,
        goodput,
        loss,
        latency,
        marking,
        flow_control,
        balance,
        fairness,
        queues,
        convergence,
        inference,
        health,
        failover,
        interference,
    )
)
KPIS = {kpi.key: kpi for family in FAMILIES for kpi in family.kpis}
"""Every KPI by its key."""


def measure(trial: Trial) -> tuple[list[Figure], list[Undefined]]:
    """The figures of a trial, and the KPIs that it does not define."""
    found = [one for family in FAMILIES for one in family.measured(trial)]
    figures = [one for one in found if isinstance(one, Figure)]
    return figures, [one for one in found if isinstance(one, Undefined)]
