"""A measurement as its document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import emu
from emu.convergence.document import (
    CONVERGENCE_SCHEMA,
    Convergence,
    MistakeEntry,
    RepetitionEntry,
    ResultEntry,
    SpreadEntry,
)
from emu.convergence.mistakes import MistakeResult
from emu.convergence.probes import SIZE_BYTES
from emu.convergence.stages import FIGURES, Measured, Result, Spread
from emu.convergence.tables import NOT_COMPARED
from emu.measure.interval_entries import intervals_entry, runs_entry

if TYPE_CHECKING:
    from emu.convergence.measure import Comparison


def document(comparison: Comparison) -> Convergence:
    setup = comparison.setup
    return {
        "schema": CONVERGENCE_SCHEMA,
        "name": setup.name,
        "version": emu.__version__,
        "computed": comparison.computed,
        "probe_bytes": SIZE_BYTES,
        "planes": [
            {
                "name": plane.name,
                "fabric": cast(Literal["roce", "ib"], plane.fabric),
                "what": plane.what,
            }
            for plane in setup.planes
        ],
        "left_out": [{"name": name, "reason": why} for name, why in setup.left_out.items()],
        "results": [_result(own) for own in comparison.results],
        "mistakes": [_mistake(own) for own in comparison.mistakes],
        "not_compared": NOT_COMPARED,
        "intervals": intervals_entry(),
    }


def _result(result: Result) -> ResultEntry:
    return {
        "plane": result.plane.name,
        "event": result.event.value,
        "interval_ns": result.interval_ns,
        "packets": result.packets,
        "figures": {name: _spread(result.spread(name)) for name in FIGURES},
        "repetitions": [_repetition(own) for own in result.repetitions],
    }


def _spread(spread: Spread) -> SpreadEntry:
    mean = spread.mean
    return {
        "median": spread.median,
        "low": min(spread.known, default=None),
        "high": max(spread.known, default=None),
        "p99": spread.p99,
        "mean": None if mean is None else runs_entry(mean),
    }


def _mistake(own: MistakeResult) -> MistakeEntry:
    return {
        "name": own.mistake.name,
        "plane": own.mistake.plane,
        "what": own.mistake.what,
        "settings": dict(own.mistake.settings),
        "lost_share": own.lost_share,
        "uplink_bytes": list(own.usual.uplink_bytes),
        "failure": _repetition(own.failure),
    }


def _repetition(own: Measured) -> RepetitionEntry:
    trial = own.ended.trial
    recording = trial.answer.recording
    return {
        "place": trial.incident.place,
        "seed": trial.incident.seed,
        "detected_ns": own.detected_ns,
        "decided_ns": own.decided_ns,
        "in_force_ns": own.in_force_ns,
        "restored_ns": own.restored_ns,
        "lost_ns": own.lost_ns,
        "lost_packets": own.lost_packets,
        "flows_hit": own.flows_hit,
        "flows": trial.pairs.flows,
        "gave_up": own.gave_up,
        "late_ns": recording.late_ns if recording else 0,
    }
