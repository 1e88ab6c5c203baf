"""What a report says about its trials: conditions, deviations from the drafts, anomalies.

The drafts want trials of 60 s and more after a warm-up of 10 s, 20 to 1000 iterations, and
real equipment. Emulated trials are shorter; the report states by how much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emu.bmwg.iterations import RECOMMENDED_CV, Bench
from emu.bmwg.kpi import DRAFTS
from emu.measure.bootstrap import method_in_words
from emu.report.phrases import conditions
from emu.units import format_time_ns
from emu.words import counted, listed

WANTED_TRIAL_NS = 60 * 10**9
"""The least duration of a trial in the drafts; emulated time here."""
WARM_UP = "10 s"
_MOST_SEEDS = 12
NOT_NORMATIVE = (
    "Marks are the drafts' reference targets. They are not normative: the drafts forbid their use "
    "as pass or fail."
)
ADAPTED = (
    "The drafts leave InfiniBand out of their scope. Figures are adapted: credit waits and FECN "
    "take the place of PFC and ECN."
)


def sources() -> str:
    """The drafts, in a sentence."""
    return f"After the Internet-Drafts {listed(DRAFTS)}."


def sentences(bench: Bench) -> Iterator[str]:
    """The head of the report."""
    yield sources()
    yield f"{conditions(bench.first.run)}."
    yield _trials(bench)
    yield NOT_NORMATIVE
    if bench.first.run.uses_credits:
        yield ADAPTED
    yield from repeatability(bench)


def _trials(bench: Bench) -> str:
    durations = sorted({one.duration_ns for one in bench.iterations})
    took = " to ".join(format_time_ns(ns) for ns in dict.fromkeys((durations[0], durations[-1])))
    rest = len(bench.iterations) - len(bench.conclusive)
    left_out = f"; {counted(rest, 'iteration')} inconclusive and left out" if rest else ""
    noun = counted(len(bench.iterations), "iteration")
    return f"{noun} of {took} of emulated time{left_out}."


def repeatability(bench: Bench) -> Iterator[str]:
    """The number of iterations, and how many figures vary by how much."""
    cvs = [own.cv for own in bench.statistics if not own.of or not own.kpi.by]
    known = [cv for cv in cvs if cv is not None]
    if len(bench.conclusive) < 2:
        yield "One iteration has no coefficient of variation (CV); --seeds N does N iterations."
        return
    yield (
        "Figures are means over the iterations, with intervals by the "
        f"{method_in_words()}; what they are computed from is that of the first iteration."
    )
    below = sum(cv < RECOMMENDED_CV for cv in known)
    yield (
        f"The coefficient of variation (CV) of {below} of {len(known)} figures is below "
        f"{RECOMMENDED_CV:.0%}, as the drafts recommend."
    )
    if known and not any(known):
        yield "No figure differs between seeds: nothing in this spec is random."


def deviations(bench: Bench) -> Iterator[str]:
    """Where the benchmark deviates from the drafts' procedures."""
    longest = max(one.duration_ns for one in bench.iterations)
    if longest < WANTED_TRIAL_NS:
        yield (
            f"A trial had {format_time_ns(longest)} of emulated time. The drafts want "
            f"{format_time_ns(WANTED_TRIAL_NS)} or more."
        )
    yield f"There was no warm-up. The drafts want {WARM_UP}."
    yield "The fabric is emulated, and so are the hosts. The drafts want real equipment."
    yield "Latencies are of messages or I/Os. The drafts want those of frames, one way."
    yield "There was no search for the highest throughput without loss, and no soak test."
    if bench.first.run.uses_credits:
        yield ADAPTED
    if len(bench.iterations) < 2:
        yield "There was one iteration. The drafts want 20 to 1000, depending on the test."


def anomalies(bench: Bench) -> dict[str, list[int]]:
    """What went wrong, each sentence with the seeds of its iterations."""
    found: dict[str, list[int]] = {}
    for one in bench.iterations:
        for sentence in one.anomalies:
            found.setdefault(sentence, []).append(one.seed)
    return found


def seeds_in_words(seeds: Sequence[int]) -> str:
    """`seed 7`, `seeds 7 and 8`."""
    return f"seed{'s' if len(seeds) > 1 else ''} {listed([*map(str, seeds)], _MOST_SEEDS)}"


def anomalies_in_words(bench: Bench) -> list[str]:
    """The anomalies, with their seeds where there are several iterations."""
    return [
        sentence if len(bench.iterations) == 1 else f"{sentence} ({seeds_in_words(seeds)})"
        for sentence, seeds in anomalies(bench).items()
    ]
