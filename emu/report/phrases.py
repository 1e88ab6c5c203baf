"""Sentences about one run that the terminal and the page share."""

from __future__ import annotations

from collections.abc import Sequence

from emu.measure.records import Fidelity, FlowRecord
from emu.report.run_view import RunFacts
from emu.units import PS_PER_NS, format_size, format_time_ns

_WORKERS = {
    "nics": "NICs",
    "ovs": "Open vSwitch",
    "other": "other programs",
    "stolen": "taken by the machine's host",
}


def conditions(run: RunFacts) -> str:
    """The fabric, plane, clock, marker and seed of a run."""
    recording = run.recording
    if not run.has_packets:
        return f"{recording.fabric_kind.title}, {recording.model} model, seed {recording.seed}"
    clock = (
        f"{recording.clock} clock"
        if recording.is_exact
        else f"{recording.clock} clock at slowdown {recording.slowdown:g}"
    )
    return (
        f"{recording.fabric_kind.title}, {recording.plane} plane, {clock},"
        f" marker {recording.marker}, seed {recording.seed}"
    )


def fidelity(run: RunFacts) -> str:
    """How well the machine kept to the schedule; empty for a model without packets, which has
    none."""
    if not run.has_packets:
        return ""
    if run.recording.is_exact and run.conclusive:
        return f"Fidelity ok: on the {run.recording.clock} clock nothing is late."
    measured = run.recording.fidelity
    verdict = "ok" if run.conclusive else measured.verdict.upper()
    on_the_wall = [
        format_time_ns(late_ns * run.recording.slowdown)
        for late_ns in (measured.late_p99_ns, measured.late_p50_ns, measured.late_max_ns)
    ]
    return (
        f"Fidelity {verdict}: 99 % of frames were at most"
        f" {format_time_ns(measured.late_p99_ns)} late ({on_the_wall[0]} of wall-clock time);"
        f" the budget is {format_time_ns(measured.budget_ns)}."
        f" Median {format_time_ns(measured.late_p50_ns)} ({on_the_wall[1]}),"
        f" latest {format_time_ns(measured.late_max_ns)} ({on_the_wall[2]})."
        f"{_forwarding(measured)}"
    )


def _forwarding(measured: Fidelity) -> str:
    if not measured.ovs_kept_max_ns:
        return ""
    return (
        f" Open vSwitch held 99 % of frames for at most {format_time_ns(measured.ovs_kept_p99_ns)}"
        f" (longest {format_time_ns(measured.ovs_kept_max_ns)})."
    )


def user_of_processors(name: str) -> str:
    """The printed name of a key of `Recording.cpu_seconds`."""
    return _WORKERS.get(name, name)


def processors(run: RunFacts) -> str:
    """The processor time of each user; empty on the virtual clock."""
    spent = run.recording.cpu_seconds
    if not spent:
        return ""
    parts = [f"{user_of_processors(name)} {seconds:.2f} s" for name, seconds in spent.items()]
    return f"Processor time: {', '.join(parts)}."


def not_known(runs: Sequence[RunFacts]) -> list[str]:
    """What the models of these runs do not know, each sentence once."""
    return list(dict.fromkeys(sentence for run in runs for sentence in run.recording.not_known))


NOT_KNOWN_TITLE = "What the flow model does not know"
INCONCLUSIVE = (
    "INCONCLUSIVE: the machine did not keep up, so its figures are not results and are not shown."
)
REMEDY = "Use a larger slowdown, or reduce the other load on this machine."


def offered_and_finished(run: RunFacts) -> str:
    """The flows and bytes that were offered, and those of finished flows; the time limit, if it
    ended the run."""
    finished = [flow for flow in run.flows if flow.completed]
    sentence = f"Offered: {_amount(run.flows)}. Finished: {_amount(finished)}."
    return " ".join(filter(None, [sentence, _ended_at_the_limit(run)]))


def _ended_at_the_limit(run: RunFacts) -> str:
    limit_ns = run.spec.time_limit_ps // PS_PER_NS
    if not any((flow.observed_until_ns or 0) >= limit_ns for flow in run.unfinished):
        return ""
    return f"The run ended at its time limit of {format_time_ns(limit_ns)} (key time_limit)."


def _amount(flows: Sequence[FlowRecord]) -> str:
    noun = "flow" if len(flows) == 1 else "flows"
    return f"{len(flows)} {noun}, {format_size(sum(flow.bytes for flow in flows))}"


def not_run(variants: Sequence[str]) -> list[str]:
    """A sentence that names the variants of a comparison without a result; none if all have one."""
    if not variants:
        return []
    return [f"There is no result of {', '.join(variants)}, which was stopped or failed."]


def against_the_bound(run: RunFacts) -> str:
    """The last completion beside the arithmetic bound; empty when either is missing."""
    if run.bound is None or run.last_finish_ns is None or run.over_bound is None:
        return ""
    sentence = (
        f"Last completion {format_time_ns(run.last_finish_ns)}, {run.over_bound:+.1%} against the"
        f" arithmetic bound of {format_time_ns(run.bound.last_finish_ns)} ({run.bound.link})."
    )
    return " ".join(filter(None, [sentence, without_work([run])]))


def without_work(runs: Sequence[RunFacts]) -> str:
    """A sentence about what the bound leaves out of steps; empty for runs without steps."""
    if not any(run.recording.steps for run in runs):
        return ""
    return (
        "The bound counts only bytes on cables. It leaves out the work of a step, and the wait of "
        "messages for it."
    )
