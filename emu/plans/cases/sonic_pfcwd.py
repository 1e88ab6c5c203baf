"""SONiC's PFC watchdog: detection, both actions, restoration, and no false detection."""

from __future__ import annotations

from emu.plans.case import Case
from emu.plans.plan import Plan, register
from emu.plans.watchdogs import (
    no_false_detection,
    storm_is_detected,
    storm_is_dropped,
    storm_is_forwarded,
    storm_is_restored,
)

_STORM = "a receiver pauses 3 for longer than the detection time, while packets of 3 wait"

register(
    Plan(
        name="sonic-pfcwd",
        title="SONiC: PFC watchdog",
        source="sonic-utilities, pfcwd; sonic-swss, orchagent/pfcwdorch.cpp",
        scaling="Times are those of the fabric's watchdog, or of --emu-plan-require. They are "
        "not scaled; the load is low instead, 5 packets or more in each poll.",
        cases=(
            Case(
                "W01",
                "A storm is detected",
                "P0",
                _STORM,
                "found within the detection time",
                "1 % earlier, 2 polls later",
                storm_is_detected,
            ),
            Case(
                "W02",
                "Action drop",
                "P0",
                f"{_STORM}; action drop",
                "packets of 3 are dropped and none is sent until the storm is over",
                "0 exact",
                storm_is_dropped,
            ),
            Case(
                "W03",
                "Action forward",
                "P1",
                f"{_STORM}; action forward",
                "packets of 3 are sent in spite of the pause, and none is dropped",
                "0 exact",
                storm_is_forwarded,
            ),
            Case(
                "W04",
                "Restoration",
                "P0",
                f"{_STORM}; then no pauses",
                "restored within the restoration time, and packets are sent again",
                "1 % earlier, 2 polls later",
                storm_is_restored,
            ),
            Case(
                "W05",
                "No false detection",
                "P1",
                "pauses of 70 % of the detection time, 5 times",
                "no storm is reported, and nothing is lost",
                "0 exact",
                no_false_detection,
            ),
        ),
    )
)
