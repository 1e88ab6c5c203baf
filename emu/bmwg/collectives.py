"""Bus bandwidth of each collective.

    BusBW = S x factor / time      factor 2(n-1)/n of all-reduce; (n-1)/n of all-gather,
                                   reduce-scatter and all-to-all, for any algorithm

1 GB among 8 ranks in 10 ms: an all-reduce has 175 GB/s. `emu.measure.recording.JobRecord` has the
same figure, as nccl-tests defines it. The drafts have no factor for a broadcast; nccl-tests' 1 is
used. The draft's reference target is 90 % of the NIC's rate; a collective that uses the links
inside of servers may have more than 100 %.
"""

from __future__ import annotations

from emu.bmwg.jct import nic_rate_bps
from emu.bmwg.kpi import TRAIN, Figure, Kpi, Measured, Table, Target, Undefined, Unit
from emu.bmwg.trial import Trial
from emu.report.run_view import RunFacts
from emu.spec.traffic.collectives import Collective
from emu.spec.traffic.experts import Experts
from emu.spec.traffic.training import TrainingStep
from emu.units import format_rate, format_size

BUSBW = Kpi(
    "busbw",
    "bus bandwidth (BusBW)",
    Table.PRIMARY,
    Unit.BYTES_PER_S,
    "S x factor / time of a collective, for each accelerator.",
    TRAIN,
)
SHARE = Kpi(
    "busbw_of_nic_rate",
    "BusBW of the NIC rate",
    Table.PRIMARY,
    Unit.PERCENT,
    "BusBW / NIC rate.",
    TRAIN,
    target=Target(90, more_is_better=True),
)
KPIS = (BUSBW, SHARE)


def measured(trial: Trial) -> Measured:
    """BusBW of each collective."""
    run = trial.run
    for job in run.recording.jobs:
        rate = job.busbw_bytes_per_s
        if rate is None:
            yield from (Undefined(kpi, "it did not finish", job.name) for kpi in KPIS)
            continue
        of = f"{job.collective}, {job.algorithm}, {job.ranks} ranks"
        inputs = f"{of}, S {format_size(job.bytes)}, factor {job.bus_factor:.4g}"
        nic_bps = nic_rate_bps(run, job)
        yield Figure(BUSBW, rate, job.name, inputs)
        yield Figure(SHARE, 800 * rate / nic_bps, job.name, f"NIC {format_rate(nic_bps)}")
    yield from _others(run)


def _others(run: RunFacts) -> Measured:
    """The entries that are no collective."""
    for name, entry in run.entries.items():
        if isinstance(entry, Collective):
            continue
        reason = "it is no collective"
        if isinstance(entry, TrainingStep):
            reason = "its collectives overlap and have no times of their own"
        if isinstance(entry, Experts):
            reason = "its ranks send different amounts, for which there is no factor"
        yield from (Undefined(kpi, reason, name) for kpi in KPIS)
