"""SONiC's test plan of PFC for lossy traffic (sonic-mgmt, pfc_lossy_testplan.md).

Times are as in the plan for lossless traffic.
"""

from __future__ import annotations

from emu.plans.bench import START_NS, Bench
from emu.plans.case import Case, Measured, all_hold
from emu.plans.congestion import oversubscribed_lossy
from emu.plans.pauses import TimedFrame, every_class_enabled, invalid_opcode, truncated
from emu.plans.plan import Plan, register
from emu.plans.storms import nothing_lost, stormed
from emu.plans.trial import Trial

_EACH = 100


def _storm(bench: Bench) -> Measured:
    """Every lossy priority has a flow, and together they fill the line."""
    lossy = bench.lossy()
    share = 1 / max(6, len(lossy))
    streams = bench.streams(lossy, share=share)
    paused = bench.two_lossless()
    return all_hold(*stormed(bench, streams, paused, bench.window_ns(share=share))[1:])


def _malformed(bench: Bench) -> Measured:
    """Three kinds of frames, `_EACH` of each, among traffic of all priorities."""
    nic, port = bench.nic_of(bench.receiver), bench.port_of(bench.receiver)
    streams, window, lossy = bench.streams(bench.priorities), bench.window_ns(), bench.lossy()
    step = window // (3 * _EACH)
    unknown = [invalid_opcode(), truncated()] * _EACH
    frames = [TimedFrame(START_NS + n * step, nic, one) for n, one in enumerate(unknown)]
    half = START_NS + len(unknown) * step
    frames += [TimedFrame(half + 1000 + n * step, nic, every_class_enabled()) for n in range(_EACH)]
    end = START_NS + window + 1000
    with bench.trial(streams, for_ns=end - START_NS, frames=frames) as trial:
        trial.run_until(half)
        first = trial.counters(port)
        trial.run_until(end)
        last = trial.counters(port)
        refused = first["rx_mac_control_unknown"][0]
        paused = sum(first["rx_pause_duration"])
        lossy_paused = sum(last["rx_pause_duration"][priority] for priority in lossy)
        forwarded = _forwarded(trial, bench)
        return all_hold(
            (paused == 0, f"{paused} ps of pause by {len(unknown)} frames of the first two kinds"),
            (refused == len(unknown), f"{refused} of them counted as unknown"),
            (
                lossy_paused == 0,
                f"{lossy_paused} ps of pause of lossy priorities by {_EACH} frames of the third",
            ),
            nothing_lost(trial, lossy),
            (forwarded == 0, f"{forwarded} frames forwarded"),
        )


def _forwarded(trial: Trial, bench: Bench) -> int:
    """MAC control frames that other testers got, less those that the switch itself sent them."""
    forwarded = 0
    for host in bench.testers[:-1]:
        at_nic, at_switch = trial.counters(bench.nic_of(host)), trial.counters(bench.port_of(host))
        got = at_nic["rx_pause_frames"][0] + at_nic["rx_mac_control_unknown"][0]
        forwarded += got - at_switch["tx_pause_frames"][0]
    return forwarded


register(
    Plan(
        name="sonic-lossy",
        title="SONiC: PFC, lossy traffic",
        source="sonic-mgmt, docs/testplan/pfc_lossy_testplan.md (pull request 25475)",
        scaling="10 s of the plan are the time of 400 packets of each flow.",
        cases=(
            Case(
                "Y01",
                "Lossy flows under a storm on the lossless priorities",
                "P0",
                "a receiver pauses 3 and 4; six lossy flows, one per priority, line/6 each",
                "each has its rate, and no loss; RxPfc of lossy priorities 0",
                "2 %; 0 exact",
                _storm,
            ),
            Case(
                "Y02",
                "Malformed PFC frames",
                "P2",
                "traffic on all priorities; PFC frames with an invalid opcode, cut short, and with "
                "all 16 class bits set",
                "the first two pause nothing, the last no lossy priority (802.1Q: the reserved 8 "
                "bits are ignored); lossy loss 0; none is forwarded; unknown ones are counted",
                "exact",
                _malformed,
            ),
            Case(
                "Y04",
                "A lossy queue is oversubscribed",
                "P1",
                "two senders, each at the line's rate on one lossy priority, to one receiver",
                "TxPfc of it 0; drops are counted",
                "exact",
                oversubscribed_lossy,
                hosts=3,
            ),
        ),
    )
)
