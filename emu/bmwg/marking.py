"""Congestion marks: the share of packets that switches marked.

    RoCE         ECN marking ratio = packets marked CE / packets
    InfiniBand   FECN instead; the drafts leave InfiniBand out of their scope

For the fabric, the packets are all RDMA packets that NICs sent, ACKs and CNPs included; at a port
they are those that the port sent, on RoCE of one priority. A switch leaves a packet with CE as it
is, so a packet counts once for the fabric. FECN is counted by each switch that sets it.
"""

from __future__ import annotations

from emu.bmwg.kpi import OF_EMU, TRAIN, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.fabric_kind import Framing

ECN = Kpi(
    "ecn_marking_ratio",
    "ECN marking ratio",
    Table.SECONDARY,
    Unit.PERCENT,
    "Packets marked CE / packets.",
    TRAIN,
    by="port and priority",
    leaves_out_zeros=True,
)
FECN = Kpi(
    "fecn_marking_ratio",
    "FECN marking ratio",
    Table.SECONDARY,
    Unit.PERCENT,
    "FECN marks / packets: on InfiniBand instead of the ECN marking ratio.",
    OF_EMU,
    by="port",
    leaves_out_zeros=True,
)
KPIS = (ECN, FECN)


def measured(trial: Trial) -> Measured:
    """The ratio of the fabric, and of each port that marked packets."""
    if trial.run.recording.fabric_kind.framing is Framing.ETHERNET:
        yield Undefined(FECN, "RoCE switches mark CE; see the ECN marking ratio")
        yield from _of_ethernet(trial)
    else:
        yield Undefined(ECN, "InfiniBand has no ECN; see the FECN marking ratio")
        yield from _of_infiniband(trial)


def _of_ethernet(trial: Trial) -> Measured:
    run, sent = trial.run, trial.run.total("packets")
    if not run.spec.marks_ce:
        yield Undefined(ECN, "ECN is off at all switches (switches.ecn)")
        return
    if sent:
        marked = run.total("ce_marked")
        yield Figure(ECN, 100 * marked / sent, detail=f"{marked:,} of {sent:,} packets")
    for port, own in trial.ports.items():
        for priority in trial.classes:
            name = f"{port} priority {priority}"
            marked = own.get(f"tx_prio{priority}_ecn_marked", 0)
            yield from _at(ECN, name, marked, own.get(f"tx_prio{priority}_packets", 0))


def _of_infiniband(trial: Trial) -> Measured:
    run, sent = trial.run, trial.run.total("packets")
    switch_ports = run.topology.switch_ports
    if not any(run.spec.given_port(port).fecn for port in switch_ports):
        yield Undefined(FECN, "FECN is off at all switches (switches.fecn)")
        return
    if sent:
        marked = trial.total("fecn_marked")
        yield Figure(FECN, 100 * marked / sent, detail=f"{marked:,} of {sent:,} packets")
    for port, own in trial.ports.items():
        yield from _at(FECN, port, own.get("fecn_marked", 0), own.get("PortXmitPkts", 0))


def _at(kpi: Kpi, place: str, marked: int, sent: int) -> Measured:
    """The ratio at a port that marked packets."""
    if marked:
        yield Figure(kpi, 100 * marked / sent, place, f"{marked:,} of {sent:,} packets")
