"""The checks of storage I/O: I/Os per second, and bits per second."""

from __future__ import annotations

from emu.measure.ios import IoFigures, io_figures
from emu.measure.recording import Recording
from emu.report.verdict.outcome import Outcome
from emu.spec.model import Bandwidth, Iops
from emu.units import format_rate


def iops(check: Iops, run: Recording) -> Outcome:
    figures = _figures(check, run)
    if figures is None:
        return _nothing(check)
    if figures.iops is None:
        return _none_over(check, figures)
    return Outcome(check.allow(figures.iops, run.clock), f"{figures.iops:,}")


def bandwidth(check: Bandwidth, run: Recording) -> Outcome:
    figures = _figures(check, run)
    if figures is None:
        return _nothing(check)
    measured = figures.bandwidth_bps
    if measured is None:
        return _none_over(check, figures)
    return Outcome(check.allow(measured, run.clock), format_rate(measured))


def _figures(check: Iops | Bandwidth, run: Recording) -> IoFigures | None:
    found = (own for own in io_figures(run.requests) if own.way == check.way)
    return next((own for own in found if own.latency.traffic == check.traffic), None)


def _none_over(check: Iops | Bandwidth, figures: IoFigures) -> Outcome:
    return Outcome(False, f"none of {figures.latency.requests:,} {check.way}s finished")


def _nothing(check: Iops | Bandwidth) -> Outcome:
    return Outcome(False, f"{check.traffic} has no {check.way}s")
