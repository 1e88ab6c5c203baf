"""Flow control: pause frames and pauses; on InfiniBand, waits for credit.

    PFC pause count      pause frames that a port sent for a priority, per second
    PFC pause duration   time for which pauses kept a priority of a port from sending

Both an XOFF and an XON are frames, and a refresh is one, too. The interval of the drafts' pause
duration is the whole trial. For the fabric, the count is of all pause frames, and the duration is
that of the port that was paused longest. 802.3x pauses have no priority. Durations come from
counters in whole microseconds.

InfiniBand has no pause frames. A port without credit waits, and PortXmitWait counts the time.
"""

from __future__ import annotations

from emu.bmwg.kpi import OF_EMU, TRAIN, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.trial import NS_PER_S, Trial
from emu.report.run_view import XMIT_WAIT

FRAMES = Kpi(
    "pfc_pause_count",
    "PFC pause count",
    Table.SECONDARY,
    Unit.PER_S,
    "Pause frames sent / time.",
    TRAIN,
    by="port and priority",
    leaves_out_zeros=True,
)
DURATION = Kpi(
    "pfc_pause_duration",
    "PFC pause duration",
    Table.SECONDARY,
    Unit.NS,
    "Time for which pauses kept a priority of a port from sending; of the fabric, the longest.",
    TRAIN,
    by="port and priority",
    leaves_out_zeros=True,
)
CREDIT_WAIT = Kpi(
    "credit_wait",
    "credit wait (PortXmitWait)",
    Table.SECONDARY,
    Unit.NS,
    "Time for which a port had packets and no credit, all lanes added up; of the fabric, the "
    "longest. On InfiniBand instead of the PFC pause duration.",
    OF_EMU,
    by="port",
    leaves_out_zeros=True,
)
KPIS = (FRAMES, DURATION, CREDIT_WAIT)
_NS_PER_US = 1_000


def measured(trial: Trial) -> Measured:
    """The figures of the fabric, and of each port that sent pauses or was held back."""
    if trial.run.uses_credits:
        reason = "InfiniBand has no pause frames; see the credit wait"
        yield from (Undefined(kpi, reason) for kpi in (FRAMES, DURATION))
        yield from _credit_waits(trial)
        return
    yield Undefined(CREDIT_WAIT, "RoCE has no credits; see the PFC pause duration")
    if _pauses(trial):
        yield from _pause_counts(trial)
        yield from _pause_durations(trial)
    else:
        reason = "PFC is off at all switches (switches.pfc)"
        yield from (Undefined(kpi, reason) for kpi in (FRAMES, DURATION))


def _pauses(trial: Trial) -> bool:
    """Whether the fabric uses pauses, or has them from a fault."""
    run = trial.run
    is_on = any(run.spec.given_port(port).pfc for port in run.topology.switch_ports)
    return is_on or bool(run.total("pause_frames"))


def _pause_counts(trial: Trial) -> Measured:
    frames = trial.run.total("pause_frames")
    yield Figure(FRAMES, frames / trial.seconds, detail=f"{frames:,} frames")
    for place, frames in _by_class(trial, "tx_prio{}_pause", "tx_global_pause").items():
        yield Figure(FRAMES, frames / trial.seconds, place, f"{frames:,} frames")


def _pause_durations(trial: Trial) -> Measured:
    paused_us = _by_class(trial, "rx_prio{}_pause_duration", "rx_global_pause_duration")
    longest = max(paused_us, key=paused_us.__getitem__, default=None)
    if longest is None:
        yield Figure(DURATION, 0, detail="no port was paused for a microsecond")
        return
    yield Figure(DURATION, paused_us[longest] * _NS_PER_US, detail=longest)
    for place, us in paused_us.items():
        yield Figure(DURATION, us * _NS_PER_US, place, _share(trial, us * _NS_PER_US))


def _by_class(trial: Trial, of_priority: str, of_all: str) -> dict[str, int]:
    """Port and priority -> a counter that is not 0; 802.3x pauses are of all priorities."""
    counted = {
        f"{port} priority {priority}": own.get(of_priority.format(priority), 0)
        for port, own in trial.ports.items()
        for priority in trial.classes
    } | {f"{port} 802.3x": own.get(of_all, 0) for port, own in trial.ports.items()}
    return {place: count for place, count in counted.items() if count}


def _credit_waits(trial: Trial) -> Measured:
    """A tick of PortXmitWait is 1 ns."""
    waited_ns = {port: own.get(XMIT_WAIT, 0) for port, own in trial.ports.items()}
    longest = max(waited_ns, key=waited_ns.__getitem__)
    detail = longest if waited_ns[longest] else "no port waited"
    yield Figure(CREDIT_WAIT, waited_ns[longest], detail=detail)
    for port, ns in waited_ns.items():
        if ns:
            yield Figure(CREDIT_WAIT, ns, port, _share(trial, ns))


def _share(trial: Trial, ns: float) -> str:
    return f"{ns / trial.seconds / NS_PER_S:.2%} of the trial"
