"""Load balance over parallel links: Jain's index and the max-mean ratio.

    JFI = (sum x)^2 / (n sum x^2)    x: what a link carried (training draft)
    MMR = max x / mean x             in load; the terminology draft allows flows or load

Parallel links are the ports by which a switch reaches the same hosts, with equal rates: those that
ECMP, flowlets or spraying choose among. A link's load is the packets that its port sent, with
headers, ACKs and CNPs, and without pause frames and credit updates. For the fabric, x covers all
parallel links of all switches, each relative to its rate. So a leaf that sends little lowers the
fabric's index even if it spreads this evenly; its own is beside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emu.bmwg.kpi import TRAIN, Figure, Kpi, Measured, Table, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.fabric_kind import Framing
from emu.measure.fairness import jain_index, max_mean_ratio
from emu.report.uplinks import equal_ports
from emu.units import format_size
from emu.words import shortened
from topologies.graph import Port, Topology

JFI = Kpi(
    "jfi_links",
    "Jain fairness index over links (JFI)",
    Table.SECONDARY,
    Unit.RATIO,
    "(sum x)^2 / (n sum x^2), x the bytes that each parallel link carried.",
    TRAIN,
    by="switch",
)
MMR = Kpi(
    "mmr",
    "max-mean ratio (MMR), of load",
    Table.SECONDARY,
    Unit.RATIO,
    "Load of the busiest parallel link / mean load.",
    TRAIN,
    by="switch",
)
KPIS = (JFI, MMR)
_MOST_NAMED = 4
_WORD_BYTES = 4
"""PortXmitData counts words."""


def measured(trial: Trial) -> Measured:
    """Both figures, of the fabric and of each switch with parallel links."""
    topology = trial.run.topology
    groups = sorted(equal_ports(topology))
    sent = _sent_bytes(trial)
    if not groups:
        reason = "no switch has parallel links to the same hosts"
        yield from (Undefined(kpi, reason) for kpi in KPIS)
        return
    every = list(dict.fromkeys(port for _, ports in groups for port in ports))
    loads = [sent[port] / topology.cable[port].rate_bps for port in every]
    if not any(loads):
        reason = "no packet crossed a parallel link"
        yield from (Undefined(kpi, reason) for kpi in KPIS)
        return
    yield from _figures(loads, "", f"{len(every)} links")
    for place, ports in _named(topology, groups):
        own = [sent[port] for port in ports]
        yield from _figures(own, place, f"{format_size(sum(own))} over {len(own)} links")


def _figures(loads: Sequence[float], place: str, inputs: str) -> Measured:
    for kpi, value in ((JFI, jain_index(loads)), (MMR, max_mean_ratio(loads))):
        if value is not None:
            yield Figure(kpi, value, place, inputs)


def _sent_bytes(trial: Trial) -> dict[Port, int]:
    """The bytes of each port's packets. A port without counters sent none."""
    named = trial.run.topology.port_named
    if trial.run.recording.fabric_kind.framing is Framing.ETHERNET:
        counters, unit = [f"tx_prio{priority}_bytes" for priority in trial.classes], 1
    else:
        counters, unit = ["PortXmitData"], _WORD_BYTES
    sent = {
        named[name]: unit * sum(own.get(counter, 0) for counter in counters)
        for name, own in trial.ports.items()
    }
    return dict.fromkeys(named.values(), 0) | sent


def _named(
    topology: Topology, groups: Sequence[tuple[str, tuple[Port, ...]]]
) -> Iterator[tuple[str, tuple[Port, ...]]]:
    """The groups by a name of their own: `leaf1 to spine1, spine2`."""
    seen: set[str] = set()
    for switch, ports in groups:
        far = [topology.port_name[port].partition(":")[2] for port in ports]
        name = f"{switch} to {shortened(far, _MOST_NAMED)}"
        if name in seen:
            name = f"{switch} to {', '.join(far)}"
        seen.add(name)
        yield name, ports
