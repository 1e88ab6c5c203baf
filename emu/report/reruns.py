"""Whether a result is luck: the same spec with other seeds, and with other numbers of hosts.

    as it stands   seed +1   seed +2   half the hosts   twice the hosts

Each is a list of settings, as after `--set`. What is expected follows from the
numbers, so the checks are the spec's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from emu.report.run_view import RunFacts
from emu.report.table import NOT_APPLICABLE, Cell, Column, Table, Tone
from emu.spec.model import Spec

AS_IT_STANDS = "as it stands"
TIMES = {"half": 0.5, "twice": 2}


@dataclass(frozen=True)
class Variation:
    """What a result is tried with."""

    name: str
    settings: tuple[str, ...] = ()

    def call(self, run: str) -> str:
        """The name of a run at this occasion."""
        return run if not self.settings else f"{run}, {self.name}"


def with_seeds(spec: Spec, seeds: int) -> Iterator[Variation]:
    """The spec as it stands, and with the seeds that follow its own."""
    yield Variation(AS_IT_STANDS)
    for further in range(1, seeds):
        yield Variation(f"seed +{further}", (f"seed={spec.seed + further}",))


def occasions(spec: Spec, seeds: int, sizes: Sequence[str]) -> Iterator[Variation]:
    """The same, and with other sizes, as far as the spec has others."""
    yield from with_seeds(spec, seeds)
    key = spec.about.hosts if spec.about else None
    if key is None:
        return
    sort = key.partition(".")[2]
    count = getattr(spec.topology, sort)
    for size in dict.fromkeys(sizes):
        scaled = _scaled(sort, count, TIMES[size])
        if scaled != count:
            yield Variation(name_of(size), (f"{key}={scaled}",))


def name_of(size: str) -> str:
    """Of the occasion with so many hosts."""
    return f"{size} the hosts"


def _scaled(sort: str, count: int, times: float) -> int:
    """Of the hosts beside the first, which many results have as the receiver; those of a ring
    are all alike."""
    alone = 0 if sort == "hosts_per_switch" else 1
    return alone + ceil((count - alone) * times)


def reruns_table(results: Mapping[str, Mapping[str, Sequence[RunFacts]]]) -> Table:
    """One row for each result, one column for each occasion. `results`: by id, by occasion."""
    names = list(dict.fromkeys(name for runs in results.values() for name in runs))
    return Table(
        title="Reruns",
        columns=tuple(Column(name, numeric=False) for name in ("result", *names)),
        rows=tuple(
            (Cell(identity), *(_verdict(runs.get(name)) for name in names))
            for identity, runs in results.items()
        ),
    )


def _verdict(runs: Sequence[RunFacts] | None) -> Cell:
    if runs is None:
        return NOT_APPLICABLE
    checks = [check.passed for run in runs for check in run.checks]
    if None in checks:
        return Cell("not judged", Tone.FAINT)
    failed = checks.count(False)
    if failed:
        return Cell(f"FAILED {failed} of {len(checks)}", Tone.BAD)
    return Cell("passed", Tone.GOOD)
