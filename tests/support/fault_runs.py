"""Runs with faults of a spec, and the records of the faults."""

from __future__ import annotations

from emu.measure.records import FaultRecord
from emu.runtime.virtual import VirtualFabric
from tests.support.small_fabrics import PAIR, Outcome, finish, spec_of, started


def faults(*entries: str) -> str:
    return f"faults=[{', '.join('{' + entry + '}' for entry in entries)}]"


def records(run: VirtualFabric) -> dict[str, FaultRecord]:
    return {fault.name: fault for fault in run.observe().faults}


def run(*settings: str, text: str = PAIR) -> tuple[Outcome, FaultRecord]:
    """A run with one fault: its outcome and the fault's record."""
    with started(spec_of(text, *settings)) as fabric:
        outcome = finish(fabric, within_ns=90_000_000)
        (record,) = records(fabric).values()
        return outcome, record
