"""The findings of a comparison, as sentences that quote the figures of these runs.

`CLAIMS` is the only place that decides when a kind of sentence is written (`holds`) and what it
says (`says`). A sentence states what was counted. Causes are left to the diagnoses. Inconclusive
runs are left out, and the first sentence names them. So are runs of a model without packets, of
which most claims are.

    runs ──about──▶ cases of a claim ──holds──▶ those that hold ──says──▶ sentences
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from emu.report.marks import marked_only_elsewhere
from emu.report.ranking import Ranking, by_size, ranking
from emu.report.run_view import RunFacts
from emu.report.senders import limited_by_senders
from emu.report.starts import how_each_starts
from emu.report.uplinks import uneven_ports
from emu.report.workloads import alike, how_they_differ
from emu.units import format_size, format_time_ns
from emu.words import counted, listed

Runs = Sequence[RunFacts]


@dataclass(frozen=True)
class Claim:
    """One kind of sentence."""

    name: str
    about: Callable[[Runs], Iterable[Any]]
    """Conclusive runs -> cases that may have a sentence."""
    holds: Callable[[Any], bool]
    """Whether a case has a sentence."""
    says: Callable[[Any], str]
    """The sentence of a case."""


def findings(runs: Runs) -> list[str]:
    """The sentences: inconclusive runs first, then the claims in their order, advice last."""
    honest = [run for run in runs if run.conclusive and run.has_packets]
    return [
        *_caveat(runs),
        *(
            claim.says(case)
            for claim in CLAIMS
            for case in claim.about(honest)
            if claim.holds(case)
        ),
    ]


def _caveat(runs: Runs) -> Iterator[str]:
    names = [run.name for run in runs if not run.conclusive]
    if names:
        yield f"The machine did not keep up with {listed(names)}; nothing is concluded from it."


# --- unfinished flows ---


def _unfinished(run: RunFacts) -> str:
    count, failed = len(run.unfinished), len(run.recording.failed_queue_pairs)
    why = f": {counted(failed, 'queue pair')} gave up" if failed else ""
    if not failed and run.recording.deadlocks:
        first = run.recording.deadlocks[0]
        why = f": a deadlock was found at {format_time_ns(first.found_ns)}"
    left = f"{run.name} did not finish {count} of {counted(len(run.flows), 'flow')}"
    return f"{left}{why}{_all_there(run)}."


def _all_there(run: RunFacts) -> str:
    """A clause about flows that only lack an acknowledgement; empty where no packets were lost."""
    delivered = [flow for flow in run.unfinished if flow.delivered_bytes == flow.bytes]
    if not delivered or not _has_loss(run):
        return ""
    whose = (
        "all of its bytes" if len(run.unfinished) == 1 else f"all bytes of {len(delivered)} of them"
    )
    return f"; {whose} arrived, but not the last acknowledgement"


# --- lost packets ---


def _has_loss(run: RunFacts) -> bool:
    return bool(run.drops or run.dropped_by_faults or run.dropped_by_hosts)


def _loss(runs: Runs) -> str:
    losses = [_loss_of(run) for run in runs if _has_loss(run)]
    clean = [run.name for run in runs if not _has_loss(run)]
    without = [f"{listed(clean)} dropped none"] if clean else []
    return "; ".join(["Loss: " + losses[0], *losses[1:], *without]) + "."


def _loss_of(run: RunFacts) -> str:
    places = [
        f"dropped {counted(run.drops, 'packet')}" if run.drops else "",
        f"lost {counted(run.dropped_by_faults, 'packet')} to faults"
        if run.dropped_by_faults
        else "",
        f"discarded {counted(run.dropped_by_hosts, 'packet')} at hosts (damaged, or no buffer)"
        if run.dropped_by_hosts
        else "",
        f"sent {run.total('retransmitted_packets'):,} again",
    ]
    return f"{run.name} {listed([place for place in places if place])}"


def _no_loss(runs: Runs) -> str:
    who = (
        "No switch dropped a packet" if any(run.refusals for run in runs) else "No packet was lost"
    )
    return f"{who} in {listed([run.name for run in runs])}."


def _refused(run: RunFacts) -> str:
    """A sentence about packets that hosts dropped because of their P_Keys."""
    hosts = [f"{host} dropped {n:,}" for host, n in run.refusals.items()]
    noun = "packet" if list(run.refusals.values()) == [1] else "packets"
    return f"In {run.name}, {listed(hosts)} {noun} for their P_Keys."


# --- flow control ---


def _waits(run: RunFacts) -> list[int]:
    return [ns for ns in run.port_waiting_ns.values() if ns]


def _was_held_back(run: RunFacts) -> bool:
    """Whether credits or pause frames held back any port."""
    return bool(_waits(run)) and (run.uses_credits or run.total("pause_frames") > 0)


def _back_pressure(run: RunFacts) -> str:
    waits = _waits(run)
    ports = f"{counted(len(waits), 'port')} for {format_time_ns(sum(waits))}"
    total = " in total" if len(waits) > 1 else ""
    return f"In {run.name}, {_cause(run)} held back {ports}{total}."


def _cause(run: RunFacts) -> str:
    if run.uses_credits:
        return f"missing credit ({counted(run.total('credit_updates'), 'credit update')})"
    return counted(run.total("pause_frames"), "pause frame")


@dataclass(frozen=True)
class Marking:
    """A run with PFC, and runs of the same workload with PFC but without CNPs."""

    run: RunFacts
    others: Runs


def _markings(runs: Runs) -> Iterator[Marking]:
    for group in alike(runs):
        with_pfc = [run for run in group if _can_pause(run)]
        blunt = [run for run in with_pfc if not run.total("cnp")]
        yield from (Marking(run, blunt) for run in with_pfc)


def _can_pause(run: RunFacts) -> bool:
    """Whether there are pause frames, or a switch with PFC. A host may pause a switch without
    PFC."""
    if run.uses_credits:
        return False
    ports = (port for switch in run.topology.switch for port in run.topology.ports[switch])
    return run.total("pause_frames") > 0 or any(run.spec.port(port).pfc for port in ports)


def _marks_are_answered(case: Marking) -> bool:
    """Whether marks led to CNPs in a run that can be compared by its pauses. Marks cannot reduce
    pauses where no run paused, or where they are only on priorities that do not pause."""
    answered = case.run.total("cnp") and case.run.total("ce_marked")
    paused = any(run.total("pause_frames") for run in (case.run, *case.others))
    return bool(answered and case.others and paused) and not marked_only_elsewhere(case.run)


def _marking(case: Marking) -> str:
    run, own = case.run, case.run.total("pause_frames")
    signs = f"{counted(run.total('ce_marked'), 'CE mark')} and {counted(run.total('cnp'), 'CNP')}"
    compared = ", ".join(_compared(own, case.others))
    return (
        f"With {signs}, {run.name} had {counted(own, 'pause frame')}: {compared} without any CNP."
    )


def _compared(own: int, others: Runs) -> Iterator[str]:
    """Clauses that compare a count of pauses with those of other runs."""
    pauses = {run.name: run.total("pause_frames") for run in others}
    for how, names in (
        ("fewer than", [name for name, count in pauses.items() if own < count]),
        ("as many as", [name for name, count in pauses.items() if own == count]),
        ("more than", [name for name, count in pauses.items() if own > count]),
    ):
        if names:
            yield f"{how} {listed([f'{name} ({pauses[name]:,})' for name in names])}"


def _with_pfc(runs: Runs) -> Iterator[Runs]:
    yield [run for run in runs if _can_pause(run)]


def _never_pause(runs: Runs) -> bool:
    return bool(runs) and not any(run.total("pause_frames") for run in runs)


def _idle_pfc(runs: Runs) -> str:
    return f"PFC had no part in {listed([run.name for run in runs])}: no pause frame was sent."


# --- limits of senders and uneven ports: their modules decide when there is a sentence ---


def _senders(runs: Runs) -> list[str]:
    """Sentences about entries whose senders leave their cables idle, with the names of the runs."""
    names: dict[str, list[str]] = {}
    for run in runs:
        for sentence in limited_by_senders(run):
            names.setdefault(sentence, []).append(run.name)
    return [
        sentence if len(own) == len(runs) else f"In {listed(own)}: {sentence}"
        for sentence, own in names.items()
    ]


def _uneven(runs: Runs) -> list[str]:
    return [f"In {run.name}: {sentence}" for run in runs for sentence in uneven_ports(run)]


# --- which fabric suits best ---


def _rankings(runs: Runs) -> Iterator[Ranking]:
    for group in alike(runs):
        for traffic in group[0].traffic:
            yield ranking(group, traffic)


def _is_a_choice(own: Ranking) -> bool:
    """Whether there are several fabrics to choose from."""
    return len(own.ranked) + len(own.unfinished) > 1


def _who_suits(own: Ranking) -> str:
    return f"For traffic like {own.traffic}, {_verdict(own)}{_left_out(own)}{_sizes(own)}."


def _verdict(own: Ranking) -> str:
    measure, best = own.measure, own.best if own.ranked else ()
    names = listed([run.name for _, run in best])
    if not best:
        return "no fabric finished"
    if len(own.ranked) == 1:
        return f"only {names} finished ({measure.by}: {measure.write(best[0][0])})"
    if len(best) == len(own.ranked):
        return f"{names} are alike by {measure.by}: {_span(own)}"
    others = [
        f"{run.name} had {measure.write(value)}, {_times(best[0][0], value)}"
        for value, run in own.ranked[len(best) :]
    ]
    suit = "suit" if len(best) > 1 else "suits"
    return f"{names} {suit} best by {measure.by}: {_span(own)}; {'; '.join(others)}"


def _times(best: float, worst: float) -> str:
    return f"{worst / best:.3g} times as much" if best else "the most"


def _span(own: Ranking) -> str:
    first, last = (own.measure.write(own.best[place][0]) for place in (0, -1))
    return first if first == last else f"{first} to {last}"


def _left_out(own: Ranking) -> str:
    if not own.unfinished:
        return ""
    late = [
        f"{run.name} ({run.unfinished_of(own.traffic)} of {counted(flows, 'flow')} unfinished)"
        for run in own.unfinished
        for flows in [len(run.traffic[own.traffic])]
    ]
    return f"; not finished: {listed(late)}"


def _sizes(own: Ranking) -> str:
    return "".join(
        f"; for the {size.which} messages (up to {format_size(size.up_to_bytes)}), {size.run.name} "
        f"was best: 50 % at most {size.p50:,.2f}, 99 % at most {size.p99:,.2f} "
        f"(n {size.finished:,})"
        for size in by_size(own)
    )


CLAIMS = (
    Claim("workloads", how_they_differ, bool, str),
    Claim("unfinished", lambda runs: runs, lambda run: bool(run.unfinished), _unfinished),
    Claim("loss", lambda runs: [runs], lambda runs: any(map(_has_loss, runs)), _loss),
    Claim(
        "no loss",
        lambda runs: [runs],
        lambda runs: bool(runs) and not any(map(_has_loss, runs)),
        _no_loss,
    ),
    Claim("P_Keys", lambda runs: runs, lambda run: bool(run.refusals), _refused),
    Claim("back-pressure", lambda runs: runs, _was_held_back, _back_pressure),
    Claim("marking", _markings, _marks_are_answered, _marking),
    Claim("idle PFC", _with_pfc, _never_pause, _idle_pfc),
    Claim("starts", how_each_starts, bool, str),
    Claim("senders", _senders, bool, str),
    Claim("equal ports", _uneven, bool, str),
    Claim("advice", _rankings, _is_a_choice, _who_suits),
)
