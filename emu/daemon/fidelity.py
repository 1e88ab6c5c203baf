"""Whether the machine kept up while the traffic of an interactive lab ran.

As for a run, the lateness histograms of the NICs and of the shim decide. The shim has counted since
the lab came up, so the lab queries it before and after the traffic and judges the difference.
Dropped lossless packets are not judged: the clocks of the shim and of the NICs have different
zeros.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from emu.bindings.af_packet_driver import AfPacketDriver
from emu.bindings.fabric import Fabric
from emu.lab.ipc.queries import ShimTiming
from emu.measure.counters import lost_in_transit
from emu.measure.fidelity import fidelity_of
from emu.measure.merge import mtu_time_ns
from emu.measure.observation import Observation, Timing
from emu.measure.records import Fidelity
from emu.measure.timeline import EMPTY_TIMELINE
from emu.spec.scenario import Spec

_HISTOGRAMS = ("late_sent", "late_taken_in", "late_returned", "plane_kept")
_COUNTS = ("send_failures", "receive_drops", "overtaken")


def timing_of_shim(fabric: Fabric, driver: AfPacketDriver) -> ShimTiming:
    """The shim's histograms and counts up to now."""
    timing = driver.timing()
    own: dict[str, Any] = {name: tuple(getattr(timing, name).tolist()) for name in _HISTOGRAMS}
    own |= {name: int(getattr(timing, name)) for name in _COUNTS}
    ports = fabric.topology.switch_ports
    return ShimTiming(**own, transit_lost=lost_in_transit(fabric.counter_table(ports)))


def fidelity_between(
    spec: Spec, slowdown: float, before: ShimTiming, after: ShimTiming, nics: Observation
) -> Fidelity:
    """The verdict on the time between two answers of the shim."""
    change = {
        name: np.subtract(getattr(after, name), getattr(before, name)) for name in _HISTOGRAMS
    }
    shim = Timing(
        **{name: counts.astype(np.uint64) for name, counts in change.items()},
        **{name: getattr(after, name) - getattr(before, name) for name in _COUNTS},
        timeline=EMPTY_TIMELINE,
    )
    return fidelity_of(
        [nics, replace(nics, timing=shim, frames_exhausted=0)],
        EMPTY_TIMELINE,
        slowdown=slowdown,
        budget_ns=mtu_time_ns(spec, spec.topology.build()),
        headroom_ns=0,
        transit_lost=after.transit_lost - before.transit_lost,
    )
