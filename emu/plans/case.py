"""A case of an acceptance plan, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from emu.errors import EmuError

if TYPE_CHECKING:
    from emu.plans.bench import Bench


class Verdict(StrEnum):
    """What became of a case."""

    PASSED = "passed"
    FAILED = "FAILED"
    SKIPPED = "skipped"
    INCONCLUSIVE = "inconclusive"
    """The emulator could not do what the case needs, so that nothing was shown."""


class NotApplicable(Exception):
    """The case cannot be carried out on this fabric. The text says what is missing."""


class Inconclusive(Exception):
    """A run shows nothing about the fabric. The text says what the emulator could not do."""


@dataclass(frozen=True)
class Measured:
    """What a case measured: sentences for people, and whether its criterion holds."""

    passed: bool
    text: str


Check = Callable[["Bench"], Measured]
"""Carries out a case. Raises NotApplicable."""


@dataclass(frozen=True)
class Case:
    """One case of a plan."""

    id: str
    title: str
    priority: str
    """P0: must pass, P1, P2."""
    set_up: str
    criterion: str
    tolerance: str
    check: Check
    hosts: int = 2
    """The least number of hosts that the fabric must have."""

    def run(self, bench: Bench) -> Result:
        """Carries it out. What it lacks is a result, too, and so is a fabric that cannot run."""
        try:
            measured = self.check(bench)
        except NotApplicable as reason:
            return self._result(Verdict.SKIPPED, str(reason))
        except Inconclusive as reason:
            return self._result(Verdict.INCONCLUSIVE, str(reason))
        except EmuError as error:
            return self._result(Verdict.FAILED, str(error))
        verdict = Verdict.PASSED if measured.passed else Verdict.FAILED
        return self._result(verdict, measured.text)

    def _result(self, verdict: Verdict, measured: str) -> Result:
        return Result(
            id=self.id,
            title=self.title,
            priority=self.priority,
            set_up=self.set_up,
            criterion=self.criterion,
            tolerance=self.tolerance,
            measured=measured,
            verdict=verdict.value,
        )


@dataclass(frozen=True)
class Result:
    """A case that was carried out, as plan.json has it. `measured` is the reason
    where nothing was measured."""

    id: str
    title: str
    priority: str
    set_up: str
    criterion: str
    tolerance: str
    measured: str
    verdict: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def all_hold(*parts: tuple[bool, str]) -> Measured:
    """A measurement of several parts, each with its sentence. Parts that fail come first."""
    ordered = sorted(parts, key=lambda part: part[0])
    return Measured(all(holds for holds, _ in parts), "; ".join(text for _, text in ordered))
