"""One run of a sweep, on a worker: from the spec and the point's changes to a row of figures."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import emu
from emu.clocks import VIRTUAL
from emu.errors import EmuError, SpecError, UsageError
from emu.models import PACKETS
from emu.report.run_figures import run_figures
from emu.report.run_view import RunFacts
from emu.resources import exhausted_resource, keep_freed_memory
from emu.runtime import Runner, runner_of
from emu.spec.diagnostic import Place, Places
from emu.spec.document import Document
from emu.spec.scenario import Spec
from emu.spec.settings import change
from emu.spec.validation import spec_of

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("flows", "ports")
"""The further tables that a run can have."""


@dataclass(frozen=True)
class Task:
    """A run to do."""

    key: str
    spec: str
    """The spec without the changes, as JSON."""
    settings: Mapping[str, Any]
    """The point's changes, and the seed."""
    option: str
    """What the changes were given with, `--vary` or `vary`, for errors."""
    model: str
    tables: tuple[str, ...] = ()
    version: str = emu.__version__


@dataclass(frozen=True)
class Outcome:
    """What came out of a task: figures, or an error."""

    key: str
    figures: Mapping[str, float | None] = field(default_factory=dict)
    """Column -> number."""
    error: str = ""
    is_in_spec: bool = False
    """Whether the error is one of the spec with the point's changes."""
    wall_seconds: float = 0.0
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def work(task: Task) -> Outcome:
    """Does a run. All errors are in the outcome."""
    began = time.monotonic()
    try:
        figures, tables = _run(task)
    except SpecError as error:
        return Outcome(task.key, error=str(error), is_in_spec=True)
    except EmuError as error:
        return Outcome(task.key, error=str(error))
    except Exception as error:
        exhausted = exhausted_resource(error)
        bug = f"{type(error).__name__}: {error}; this is a bug in emu, please report it"
        return Outcome(task.key, error=str(exhausted or bug))
    return Outcome(task.key, figures, wall_seconds=time.monotonic() - began, tables=tables)


def spec_at(spec: str, settings: Mapping[str, Any], option: str) -> Spec:
    """The spec with a point's changes. Raises SpecError with all findings."""
    data = json.loads(spec)
    document = Document(data, Places(Place(0, 0, str(data["name"]))))
    for key, value in settings.items():
        change(document, key, value, f"{option} {key}")
    return spec_of(document)


@lru_cache(maxsize=4)
def runner_for(model: str) -> Runner:
    """What runs a task: packets on the virtual clock with one thread, or the flow model."""
    runner = runner_of(model, VIRTUAL.name)
    return runner.with_threads(1) if model == PACKETS.name else runner


def _run(task: Task) -> tuple[dict[str, float | None], dict[str, pd.DataFrame]]:
    if task.version != emu.__version__:
        raise UsageError(
            f"this worker has emu {emu.__version__}, and the sweep is one of emu {task.version}; "
            "install the same on all workers"
        )
    spec = spec_at(task.spec, task.settings, task.option)
    keep_freed_memory()
    with TemporaryDirectory(prefix="emu-sweep-") as folder:
        recording = runner_for(task.model).run(spec, out=Path(folder))
        facts = RunFacts(spec.name, recording, spec, spec.topology.build())
        figures = {figure.column: figure.value for figure in run_figures(facts)}
        failed = sum(result.passed is False for result in facts.checks)
    figures |= {"checks": len(facts.checks), "checks_failed": failed}
    return figures, _tables(task, facts)


def _tables(task: Task, facts: RunFacts) -> dict[str, pd.DataFrame]:
    if not task.tables:
        return {}
    from emu.scripting import frames

    made = {"flows": frames.flows, "ports": frames.ports}
    return {
        name: made[name](facts.recording).rename_axis({"flows": "name", "ports": "port"}[name])
        for name in task.tables
    }
