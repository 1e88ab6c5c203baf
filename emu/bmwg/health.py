"""Indicators of the fabric's health besides those of congestion and loss.

    link flap count    links that were lost, each loss once
    CRC error rate     damaged frames that ports received, per second
    PFC storms         storms that PFC watchdogs found
    deadlocks          cyclic buffer dependencies or credit loops that stood still

Emulated switches have no processor, memory and power to measure. What the drafts ask for beyond
these is listed as not defined.
"""

from __future__ import annotations

from emu.bmwg.kpi import TERM, TRAIN, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.fabric_kind import Framing

LINK_FLAPS = Kpi(
    "link_flaps", "link flap count", Table.HEALTH, Unit.COUNT, "Times that a link was lost.", TRAIN
)
CRC_ERRORS = Kpi(
    "crc_error_rate",
    "CRC/FCS error rate",
    Table.HEALTH,
    Unit.PER_S,
    "Damaged frames that ports received / time.",
    TRAIN,
)
STORMS = Kpi(
    "pfc_storms",
    "PFC storms",
    Table.HEALTH,
    Unit.COUNT,
    "Storms that PFC watchdogs detected.",
    TERM,
)
DEADLOCKS = Kpi(
    "deadlocks",
    "deadlocks",
    Table.HEALTH,
    Unit.COUNT,
    "Loops of switch ports that wait for each other for ever.",
    TRAIN,
)


def _missing(key: str, name: str, unit: Unit, definition: str) -> Kpi:
    return Kpi(key, name, Table.HEALTH, unit, definition, TRAIN)


CPU = _missing("switch_cpu", "switch CPU utilization", Unit.PERCENT, "Of the control plane.")
MEMORY = _missing("switch_memory", "switch memory utilization", Unit.PERCENT, "Of the switch.")
POWER = _missing("power", "power consumption (watts)", Unit.COUNT, "Of each switch and port.")
ACK_DELAY = Kpi(
    "ack_delay",
    "CTS/ACK delay",
    Table.SECONDARY,
    Unit.NS,
    "Delay of control messages.",
    TRAIN,
)
KPIS = (LINK_FLAPS, CRC_ERRORS, STORMS, DEADLOCKS, CPU, MEMORY, POWER, ACK_DELAY)


def measured(trial: Trial) -> Measured:
    """The indicators that the emulator has, and those that it has not."""
    flaps = _lost_links(trial)
    yield Figure(LINK_FLAPS, flaps)
    damaged = trial.total(_damaged(trial))
    yield Figure(CRC_ERRORS, damaged / trial.seconds, detail=f"{damaged:,} frames")
    yield Figure(DEADLOCKS, len(trial.run.recording.deadlocks))
    yield from _storms(trial)
    reason = "an emulated switch has no processor, memory and power consumption of its own"
    yield from (Undefined(kpi, reason) for kpi in (CPU, MEMORY, POWER))
    yield Undefined(ACK_DELAY, "a run records no times of acknowledgements")


def _lost_links(trial: Trial) -> int:
    """Both ends of a cable count its losses."""
    names = trial.run.topology.port_name
    counter = "link_downed" if _framing(trial) is Framing.ETHERNET else "LinkDownedCounter"
    return sum(
        max(trial.ports.get(names[port], {}).get(counter, 0) for port in (cable.a, cable.b))
        for cable in trial.run.topology.cables
    )


def _damaged(trial: Trial) -> str:
    return "rx_crc_errors" if _framing(trial) is Framing.ETHERNET else "SymbolErrorCounter"


def _framing(trial: Trial) -> Framing:
    return trial.run.recording.fabric_kind.framing


def _storms(trial: Trial) -> Measured:
    run = trial.run
    if any(run.spec.switch(name).watchdog for name in run.topology.switch) and not run.uses_credits:
        yield Figure(STORMS, run.total("pfc_storms"))
    else:
        yield Undefined(STORMS, "no switch has a PFC watchdog (switches.watchdog)")
