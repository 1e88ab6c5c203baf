"""What a comparison teaches, in sentences: each one quotes the numbers of these runs.

A sentence is only written when the runs show it. Runs that the machine could
not honestly produce are left out, and the first sentence says which.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu.report.facts import RunFacts, last_finish_ns
from emu.report.senders import limited_by_senders
from emu.report.starts import how_each_starts
from emu.report.words import listed as _list
from emu.units import format_time_ns

ALIKE = 0.02
"""Results nearer to each other than this are called alike."""


def findings(runs: Sequence[RunFacts]) -> list[str]:
    """The sentences, the caveat first and the advice last."""
    honest = [run for run in runs if run.conclusive]
    sentences = [_caveat(runs), _loss(honest), *_refused(honest)]
    sentences += [*_back_pressure(honest), *_marking(honest), *how_each_starts(honest)]
    sentences += _senders(honest)
    for traffic in dict.fromkeys(name for run in honest for name in run.traffic):
        sentences.append(_who_suits(honest, traffic))
    return [sentence for sentence in sentences if sentence]


def _caveat(runs: Sequence[RunFacts]) -> str:
    names = [run.name for run in runs if not run.conclusive]
    if not names:
        return ""
    return f"The machine did not keep up with {_list(names)}; nothing is concluded from it."


def _loss(runs: Sequence[RunFacts]) -> str:
    lossy = [run for run in runs if run.drops]
    if not runs:
        return ""
    if not lossy:
        nothing = (
            "Switches lost nothing" if any(run.refusals for run in runs) else "Nothing was lost"
        )
        return f"{nothing}: {_list([run.name for run in runs])} dropped no packet."
    losses = [
        f"{run.name} dropped {run.drops:,} packets and sent"
        f" {run.total('retransmitted_packets'):,} again"
        for run in lossy
    ]
    clean = [run.name for run in runs if not run.drops]
    return f"Loss: {_list(losses)}" + (f"; {_list(clean)} dropped none." if clean else ".")


def _refused(runs: Sequence[RunFacts]) -> list[str]:
    """What switches let pass, and hosts did not."""
    return [
        f"In {run.name}, {_list([f'{host} dropped {n:,}' for host, n in run.refusals.items()])}"
        " packets for their P_Keys."
        for run in runs
        if run.refusals
    ]


def _back_pressure(runs: Sequence[RunFacts]) -> list[str]:
    """What being lossless cost: how long ports stood still, and why."""
    sentences = []
    for run in runs:
        waits = [ns for ns in run.port_waiting_ns.values() if ns]
        if waits:
            sentences.append(
                f"{run.name} held {len(waits)} ports back, for {format_time_ns(sum(waits))}"
                f" together, {_how(run)}."
            )
    return sentences


def _how(run: RunFacts) -> str:
    if run.uses_credits:
        return f"for want of credit ({run.total('credit_updates'):,} credit updates)"
    return f"by {run.total('pause_frames'):,} pause frames"


def _marking(runs: Sequence[RunFacts]) -> list[str]:
    """Congestion control set against pauses without it."""
    marking = [run for run in runs if run.total("cnp")]
    blunt = [run for run in runs if not run.total("cnp") and run.total("pause_frames")]
    return [
        f"{run.total('ce_marked'):,} CE marks and {run.total('cnp'):,} CNPs slowed the senders of"
        f" {run.name}: {run.total('pause_frames'):,} pause frames instead of"
        f" {other.total('pause_frames'):,} in {other.name}."
        for run in marking
        for other in blunt
    ]


def _senders(runs: Sequence[RunFacts]) -> list[str]:
    """Entries whose senders leave their cables idle, each with the runs in which they do."""
    names: dict[str, list[str]] = {}
    for run in runs:
        for sentence in limited_by_senders(run):
            names.setdefault(sentence, []).append(run.name)
    return [
        sentence if len(own) == len(runs) else f"In {_list(own)}: {sentence}"
        for sentence, own in names.items()
    ]


def _who_suits(runs: Sequence[RunFacts], traffic: str) -> str:
    """Which fabrics suit one entry of the traffic: those where it was over first."""
    finishes = {run.name: last_finish_ns(run.traffic.get(traffic, ())) for run in runs}
    over = sorted((end, name) for name, end in finishes.items() if end is not None)
    if len(over) < 2:
        return ""
    best_ns, worst_ns, worst = over[0][0], *over[-1]
    best = [name for end, name in over if end <= best_ns * (1 + ALIKE)]
    if len(best) == len(runs):
        return f"For traffic like {traffic} they are alike: over after {_span(over)} on each."
    return (
        f"For traffic like {traffic}, {_list(best)} {'suit' if len(best) > 1 else 'suits'} best:"
        f" over after {_span(over[: len(best)])};"
        f" {worst} took {format_time_ns(worst_ns)}, {worst_ns / best_ns:.2g} times as long."
    )


def _span(finishes: Sequence[tuple[int, str]]) -> str:
    first, last = (format_time_ns(finishes[place][0]) for place in (0, -1))
    return first if first == last else f"{first} to {last}"
