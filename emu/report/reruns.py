"""Reruns that show whether a result depends on chance: other seeds, and other numbers of hosts.

    as it stands   seed +1   seed +2   half the hosts   twice the hosts

Each rerun is a list of settings, as `--set` takes them. The checks are those of the spec: what
they expect follows from its numbers.
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
    """One rerun of a result: its name and its settings."""

    name: str
    settings: tuple[str, ...] = ()

    def call(self, run: str) -> str:
        """The name of a run in this rerun."""
        return run if not self.settings else f"{run}, {self.name}"


def with_seeds(spec: Spec, seeds: int) -> Iterator[Variation]:
    """The spec as it stands, and with the seeds that follow its own."""
    yield Variation(AS_IT_STANDS)
    for further in range(1, seeds):
        yield Variation(f"seed +{further}", (f"seed={spec.seed + further}",))


def variations(spec: Spec, seeds: int, sizes: Sequence[str]) -> Iterator[Variation]:
    """The variations by seed, and those with other sizes where the spec has a number of hosts."""
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
    """The name of the variation with this number of hosts."""
    return f"{size} the hosts"


def _scaled(sort: str, count: int, times: float) -> int:
    """The scaled number of hosts. The first host, the receiver in many results, is not scaled. In
    a ring, all hosts are alike and are scaled."""
    alone = 0 if sort == "hosts_per_switch" else 1
    return alone + ceil((count - alone) * times)


def reruns_table(results: Mapping[str, Mapping[str, Sequence[RunFacts]]]) -> Table:
    """One row for each result, one column for each variation. `results`: by id, by variation."""
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
