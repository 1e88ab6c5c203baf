"""ECN marking as SONiC's plans test it: the curve, its bounds, and its place before PFC.

A receiver pauses its port, and a known number of packets joins the queue: the k-th packet finds
k - 1 others. So the depth of each is known, and nothing depends on time.
"""

from __future__ import annotations

from emu.plans.case import Case
from emu.plans.congestion import (
    all_marked_above_kmax,
    marks_before_pauses,
    marks_follow_curve,
    marks_per_queue,
    no_marks_below_kmin,
)
from emu.plans.plan import Plan, register

_FILL = "3 is paused while packets of 3 join its queue, up to "

register(
    Plan(
        name="sonic-ecn",
        title="SONiC: ECN marking",
        source="sonic-mgmt, tests/snappi_tests/ecn (issue 2137, pull request 17108): probability "
        "(q - kmin) / (kmax - kmin) x pmax",
        scaling="Depths are in bytes and are not scaled.",
        cases=(
            Case(
                "E01",
                "No marks below kmin",
                "P0",
                f"{_FILL}just below kmin",
                "no packet is marked, and none causes a pause",
                "0 exact",
                no_marks_below_kmin,
            ),
            Case(
                "E02",
                "Marks follow the curve",
                "P0",
                f"{_FILL}kmax",
                "marks are the sum of (q - kmin) / (kmax - kmin) x pmax over all packets",
                "4 standard deviations, and 1",
                marks_follow_curve,
            ),
            Case(
                "E03",
                "Every packet is marked above kmax",
                "P1",
                f"{_FILL}50 packets more than kmax",
                "all of these 50 are marked",
                "exact",
                all_marked_above_kmax,
            ),
            Case(
                "E04",
                "Marks before pauses",
                "P0",
                "two senders on 3, their load ramped up to twice the line",
                "CE before the first pause, as the load grows; no loss",
                "order",
                marks_before_pauses,
                hosts=3,
            ),
            Case(
                "E05",
                "A queue marks by its own depth",
                "P1",
                "3 is paused until its queue is beyond kmax; all others have line/8",
                "packets of 3 are marked, no others",
                "exact",
                marks_per_queue,
            ),
        ),
    )
)
