"""Checks of what was captured, by packet formats that share no code with what sent it."""

from __future__ import annotations

from collections.abc import Iterator

from emu.measure.recording import Recording
from emu.report.verdict.outcome import Outcome
from emu.spec.model import Checksums
from emu.wire.inspect import inspect
from emu.wire.inspection import Inspection, Verdicts


def checksums(check: Checksums, run: Recording) -> Outcome:
    files = [inspect(path) for port, path in run.captures.items() if {port, "all"} & set(check.at)]
    damage = next((file.damage for file in files if file.damage), "")
    if damage:
        return Outcome(False, damage)
    verdicts = [verdict for file in files for verdict in _verdicts(file)]
    right = sum(verdict.ok for verdict in verdicts)
    wrong = sum(verdict.bad + verdict.unchecked for verdict in verdicts)
    return Outcome(right >= check.at_least and not wrong, f"{right:,} right, {wrong:,} wrong")


def _verdicts(file: Inspection) -> Iterator[Verdicts]:
    yield from (file.icrc, file.vcrc, file.lpcrc)
