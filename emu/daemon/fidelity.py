"""Whether the machine kept up while the traffic of a standing lab ran.

As for a run, by the fidelity ledgers of the NICs and of the shim. The shim's counts
from the lab's beginning, so it is asked before and after, and the difference judged;
lossless packets that were dropped are not, as its times are not those of the NICs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from emu.bindings.af_packet_driver import AfPacketDriver
from emu.bindings.fabric import Fabric
from emu.lab.ipc.messages import Json
from emu.measure.counters import lost_in_transit
from emu.measure.fidelity import judge
from emu.measure.merge import mtu_time_ns
from emu.measure.observation import Ledger, Observation
from emu.measure.recording import Fidelity
from emu.measure.timeline import NOTHING_NOTED
from emu.spec.scenario import Spec

_HISTOGRAMS = ("late_sent", "late_taken_in", "late_returned", "plane_kept")
_COUNTS = ("send_failures", "receive_drops", "overtaken")


def share_of_shim(fabric: Fabric, driver: AfPacketDriver) -> Json:
    """In the shim: its ledger up to now."""
    ledger = driver.ledger()
    return {
        **{name: getattr(ledger, name).tolist() for name in _HISTOGRAMS},
        **{name: getattr(ledger, name) for name in _COUNTS},
        "transit_lost": lost_in_transit(fabric.counter_table(fabric.topology.switch_ports)),
    }


def judged(spec: Spec, slowdown: float, before: Json, after: Json, nics: Observation) -> Fidelity:
    """The verdict on the time between two shares of the shim."""
    change = {name: np.subtract(after[name], before[name]) for name in _HISTOGRAMS}
    shim = Ledger(
        **{name: counts.astype(np.uint64) for name, counts in change.items()},
        **{name: after[name] - before[name] for name in _COUNTS},
        timeline=NOTHING_NOTED,
    )
    return judge(
        [nics, replace(nics, ledger=shim, frames_exhausted=0)],
        NOTHING_NOTED,
        slowdown=slowdown,
        budget_ns=mtu_time_ns(spec, spec.topology.build()),
        headroom_ns=0,
        transit_lost=after["transit_lost"] - before["transit_lost"],
    )
