"""Inference over the fabric: time to first token, and the fabric's part of it."""

from __future__ import annotations

from collections.abc import Callable

from emu.measure.prompts import KV_WAIT_MARK_NS, TTFT_MARK_NS, PromptFigures
from emu.measure.requests import Latency
from emu.report.run_view import RunFacts
from emu.report.table import NOT_APPLICABLE, Cell, Column, Table, Tone, of_finished
from emu.units import format_time_ns

_Figure = Callable[[PromptFigures], float | None]


def inference_table(run: RunFacts) -> Table:
    """Four rows for each inference entry; no rows without inference."""
    return Table(
        title="Inference",
        columns=(
            Column("traffic", numeric=False),
            Column("", numeric=False),
            *map(Column, ("finished", "unfinished", "50 %", "99 %", "max", "mark for 99 %")),
        ),
        rows=tuple(row for figures in run.prompts for row in _rows(run, figures)),
        note="TTFT: from the arrival of a prompt to its first token. KV transfer: from the first "
        "message of a KV cache to its last byte. KV wait: from the end of prefill until the cache "
        "is complete, which is what the fabric adds to TTFT. The marks are references of the IETF "
        "draft on AI inference fabrics (BMWG), which calls them non-normative.",
    )


def _rows(run: RunFacts, figures: PromptFigures) -> tuple[tuple[Cell, ...], ...]:
    return (
        _times(run, "TTFT", figures.ttft, TTFT_MARK_NS),
        _times(run, "KV transfer", figures.transfer, None),
        _times(run, "KV wait", figures.wait, KV_WAIT_MARK_NS),
        (
            Cell(figures.traffic),
            Cell("KV wait / TTFT"),
            *_counts(figures.ttft),
            *(
                of_finished(run, share, "{:.1%}".format)
                for share in (figures.share_p50, figures.share_p99, figures.share_max)
            ),
            NOT_APPLICABLE,
        ),
    )


def _times(run: RunFacts, what: str, own: Latency, mark_ns: int | None) -> tuple[Cell, ...]:
    return (
        Cell(own.traffic),
        Cell(what),
        *_counts(own),
        *(of_finished(run, time, format_time_ns) for time in (own.p50_ns, own.p99_ns, own.max_ns)),
        NOT_APPLICABLE if mark_ns is None else Cell(format_time_ns(mark_ns), Tone.FAINT),
    )


def _counts(own: Latency) -> tuple[Cell, Cell]:
    tone = Tone.BAD if own.unfinished else Tone.PLAIN
    return Cell(f"{own.finished:,}"), Cell(f"{own.unfinished:,}", tone)


def prompt_rows(name: str) -> tuple[tuple[str, Callable[[RunFacts], Cell]], ...]:
    """The rows of an entry in a table of several runs."""

    def row(figure: _Figure, write: Callable[[float], str]) -> Callable[[RunFacts], Cell]:
        def cell(run: RunFacts) -> Cell:
            own = next((own for own in run.prompts if own.traffic == name), None)
            return NOT_APPLICABLE if own is None else of_finished(run, figure(own), write)

        return cell

    return (
        (f"{name}: prompts answered (n)", row(lambda own: own.ttft.finished, "{:,}".format)),
        (f"{name}: TTFT, 50 %", row(lambda own: own.ttft.p50_ns, format_time_ns)),
        (f"{name}: TTFT, 99 %", row(lambda own: own.ttft.p99_ns, format_time_ns)),
        (f"{name}: KV transfer, 99 %", row(lambda own: own.transfer.p99_ns, format_time_ns)),
        (f"{name}: KV wait, 50 %", row(lambda own: own.wait.p50_ns, format_time_ns)),
        (f"{name}: KV wait, 99 %", row(lambda own: own.wait.p99_ns, format_time_ns)),
        (f"{name}: KV wait / TTFT, 99 %", row(lambda own: own.share_p99, "{:.1%}".format)),
    )
