"""Plans by name. Each module of `emu.plans.cases` registers its own."""

from __future__ import annotations

from dataclasses import dataclass

from emu.errors import UsageError
from emu.plans.case import Case
from emu.registry import import_modules
from emu.spec.diagnostic import did_you_mean

PLANS: dict[str, Plan] = {}


@dataclass(frozen=True)
class Plan:
    """A named list of cases. `scaling` says how times of the source became emulated ones."""

    name: str
    title: str
    source: str
    scaling: str
    cases: tuple[Case, ...]


def register(plan: Plan) -> None:
    """Makes a plan known by its name."""
    PLANS[plan.name] = plan


def plan_named(name: str) -> Plan:
    """The plan of this name. Raises UsageError with all names."""
    from emu.plans import cases

    import_modules(cases.__name__, cases.__path__)
    if name not in PLANS:
        raise UsageError(
            f"--emu-plan: there is no plan {name!r}{did_you_mean(name, PLANS)}; there are "
            f"{', '.join(sorted(PLANS))}"
        )
    return PLANS[name]
