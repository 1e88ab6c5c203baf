"""The sentences and tables of a measurement, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from emu.convergence.events import Event, Incident
from emu.convergence.mistakes import MistakeResult
from emu.convergence.probes import SIZE_BYTES
from emu.convergence.stages import P99_FROM, Result, Spread
from emu.report.run_figures import written
from emu.report.table import NOT_APPLICABLE, Cell, Column, Table, Tone
from emu.units import format_time_ns
from emu.words import counted, listed

if TYPE_CHECKING:
    from emu.convergence.measure import Comparison

_COLUMNS = (
    ("detected_ns", "detected", "ns"),
    ("decided_ns", "control plane done", "ns"),
    ("in_force_ns", "tables in force", "ns"),
    ("restored_ns", "traffic restored", "ns"),
    ("lost_ns", "mean loss of a flow", "ns"),
    ("lost_packets", "packets lost", ""),
    ("flows_hit", "flows hit", ""),
    ("gave_up", "RC gave up", ""),
)
_OF_LOSSES = ("lost_ns", "lost_packets")
_HAPPENS = {
    Event.LINK_DOWN: "a cable is pulled, and both ends lose their carrier",
    Event.LINK_SILENT: "a cable loses every packet, and its ports stay up",
    Event.SWITCH_DOWN: "a switch without hosts loses its power",
    Event.LINK_UP: "a cable that was pulled is plugged in again",
}
NEVER = "not found"
_LATE_NS = 10_000_000
"""From here on, a sentence says so."""
NOT_COMPARED = (
    "The times have different origins. static and adaptive take routing.convergence, which is a "
    "setting. That of BGP is nearly all waiting by configuration, measured with FRR in real time. "
    "That of OpenSM is computation on this machine: ibsim answers at once, so round trips of its "
    "packets are left out. None has the time in which an ASIC's software writes its tables."
)
STAGES = (
    "All times are since the event. detected: a carrier, a trap, or the first session of BGP that "
    "changes. control plane done: the last route that FRR tells its switch, or OpenSM's tables on "
    "all switches. tables in force: the last change of a switch's routes. traffic restored: the "
    "packets that the worst flow lost, times the interval between two (RFC 7747). Where each "
    "packet takes its own path, each flow loses a share of its packets, so compare the mean loss "
    "of a flow: what all flows lost, over their number. RC gave up: queue pairs of reliable "
    "connections that failed, with the timeouts of the spec's NICs."
)


def sentences(comparison: Comparison) -> Iterator[str]:
    """What was done, and each event in one sentence."""
    setup = comparison.setup
    planes = counted(len(setup.planes), "control plane")
    events = counted(len(setup.events), "event")
    repetitions = counted(setup.request.repetitions, "repetition")
    yield (
        f"{planes}, {events}, {repetitions} of each at the same places. "
        f"{counted(comparison.computed, 'run')} done now."
    )
    for event in setup.events:
        yield _about(event, [own for own in comparison.results if own.event is event])
    for name, why in setup.left_out.items():
        yield f"{name} is left out: {why}"
    late = [own for own in comparison.results if own.late_ns > _LATE_NS]
    if late:
        worst = max(own.late_ns for own in late)
        names = listed(list(dict.fromkeys(own.plane.name for own in late)))
        yield (
            f"This machine was busy while FRR ran: times of {names} may be up to "
            f"{format_time_ns(worst)} late."
        )
    yield NOT_COMPARED


def _about(event: Event, results: Sequence[Result]) -> str:
    parts = [f"{own.plane.name} {_in_words(own)}" for own in results]
    return f"{event}, until traffic is restored: {', '.join(parts)}."


def _in_words(result: Result) -> str:
    spread = result.spread("restored_ns")
    if spread.median is None:
        return "never"
    if spread.median == 0 and not any(spread.known):
        return "nothing lost"
    return format_time_ns(spread.median)


def event_table(comparison: Comparison, event: Event) -> Table:
    """All planes for an event."""
    results = [own for own in comparison.results if own.event is event]
    return Table(
        title=f"{event}: {_HAPPENS[event]}",
        columns=(
            Column("control plane", numeric=False),
            *(Column(name) for _, name, _ in _COLUMNS),
            Column("probe every"),
        ),
        rows=tuple(_row(own) for own in results),
        note=_note(results),
    )


def _row(result: Result) -> tuple[Cell, ...]:
    goes_on = result.spread("restored_ns").median is None
    cells = (
        _cell(result.spread(figure), figure, unit, goes_on and figure in _OF_LOSSES)
        for figure, _, unit in _COLUMNS
    )
    return (Cell(result.plane.name), *cells, Cell(format_time_ns(result.interval_ns)))


def _cell(spread: Spread, figure: str, unit: str, goes_on: bool) -> Cell:
    """The median, with the range or the 99th percentile. `goes_on`: it would be more in a longer
    run."""
    if spread.median is None:
        if figure in ("detected_ns", "restored_ns"):
            return Cell(NEVER if figure == "detected_ns" else "never", Tone.BAD)
        return NOT_APPLICABLE
    text = f"{'> ' * goes_on}{written(spread.median, unit)}"
    if not spread.is_whole:
        missing = len(spread.values) - len(spread.known)
        text += f", never in {missing} of {len(spread.values)}"
    elif min(spread.known) < max(spread.known):
        low, high = (written(end, unit) for end in (min(spread.known), max(spread.known)))
        text += f" [{low}, {high}]" if spread.p99 is None else f" (p99 {written(spread.p99, unit)})"
    return Cell(text, Tone.BAD if figure == "gave_up" and spread.median else Tone.PLAIN)


def _note(results: Sequence[Result]) -> str:
    most = max(own.flows for own in results)
    spread = "the 99th percentile" if len(results[0].repetitions) >= P99_FROM else "[range]"
    return (
        f"Medians, with {spread} over the repetitions where they differ. Up to {most:,} flows of "
        f"probes with {SIZE_BYTES} B each, one in every interval, which is also the resolution of "
        "lost times. It differs by plane, so packets lost compare only with the same interval."
    )


def mistakes_table(comparison: Comparison) -> Table:
    """What mistakes cost as they are, and when a link then fails; no rows if none is measured."""
    heads = (
        *("control plane", "mistake"),
        *("lost while nothing fails", "uplinks in use", "busiest uplink"),
        *("traffic restored", "mean loss of a flow", "RC gave up", "what it is"),
    )
    texts = ("control plane", "mistake", "what it is")
    at = comparison.setup.mistakes_at
    return Table(
        title="Mistakes, and a link that fails",
        columns=tuple(Column(head, numeric=head not in texts) for head in heads),
        rows=tuple(_mistake_row(own) for own in comparison.mistakes),
        note="" if at is None else _about_mistakes(at),
    )


def _about_mistakes(at: Incident) -> str:
    return (
        f"One run each without a failure and one in which {at.place} is pulled. Uplinks are those "
        f"of {at.leaf}; one is in use if it carries half of an even share or more. The times are "
        "since the failure, and losses of that run include those that the mistake causes anyway."
    )


def _mistake_row(own: MistakeResult) -> tuple[Cell, ...]:
    lost, busiest, failure = own.lost_share, own.busiest_share, own.failure
    total = len(own.usual.uplink_bytes)
    restored = failure.restored_ns
    return (
        Cell(own.mistake.plane),
        Cell(own.mistake.name),
        Cell(f"{lost:.1%}".replace("%", " %") if lost else "0", Tone.BAD if lost else Tone.PLAIN),
        Cell(f"{own.uplinks_used} of {total}"),
        NOT_APPLICABLE if busiest is None else Cell(f"{busiest:.0%}".replace("%", " %")),
        Cell("never", Tone.BAD) if restored is None else Cell(format_time_ns(restored)),
        Cell(f"{'> ' * (restored is None)}{format_time_ns(failure.lost_ns)}"),
        Cell(str(failure.gave_up), Tone.BAD if failure.gave_up else Tone.PLAIN),
        Cell(own.mistake.what),
    )


def planes_table(comparison: Comparison) -> Table:
    """What each control plane is."""
    return Table(
        title="Control planes",
        columns=(
            Column("control plane", numeric=False),
            Column("fabric", numeric=False),
            Column("what it is", numeric=False),
        ),
        rows=tuple(
            (Cell(plane.name), Cell(plane.fabric), Cell(plane.what))
            for plane in comparison.setup.planes
        ),
    )


def places_table(comparison: Comparison) -> Table:
    """Where each repetition happens."""
    setup = comparison.setup
    numbers = range(1, setup.request.repetitions + 1)
    places = {(own.event, own.repetition): own for own in setup.incidents}
    return Table(
        title="Places",
        columns=(
            Column("repetition"),
            *(Column(event, numeric=False) for event in setup.events),
            Column("seed"),
        ),
        rows=tuple(
            (
                Cell(str(number)),
                *(Cell(places[event, number].place) for event in setup.events),
                Cell(str(places[setup.events[0], number].seed)),
            )
            for number in numbers
        ),
        note="The same under each control plane.",
    )


def terminal_tables(comparison: Comparison) -> Iterator[Table]:
    for event in comparison.setup.events:
        yield event_table(comparison, event)
    if comparison.mistakes:
        yield mistakes_table(comparison)
