"""Writes the files of a run or a comparison.

emu run                OUT/summary.json  series.npz  spec.json  report.html
emu compare            OUT/comparison.json  comparison.html  and a folder as above for each run;
                       with --seeds, in a folder for each seed
emu compare --models   OUT/models.json  models.html  and folders as above in packets/ and in flow/
emu compare --clocks   OUT/clocks.json  and folders as above in real/ and in virtual/; with several
                       seeds, in a folder for each seed
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from emu.output_dir import write_text, writing_into
from emu.report.both_models import BothModels
from emu.report.html import comparison_page, models_page, run_page
from emu.report.run_view import RunFacts
from emu.report.seeds import OverSeeds, seeds_document
from emu.report.store import SERIES_FILE, SUMMARY_FILE, save_run
from emu.report.summary import compare, to_json

PAGE_FILE = "report.html"
COMPARISON_PAGE_FILE = "comparison.html"
COMPARISON_FILE = "comparison.json"
MODELS_PAGE_FILE = "models.html"
MODELS_FILE = "models.json"
CLOCKS_FILE = "clocks.json"


def write_run(run: RunFacts, out: Path) -> dict[str, Path]:
    """Writes one run into `out`. Returns the path of each file by its kind. Raises EmuError."""
    with writing_into(out):
        save_run(run, out)
        write_text(out / PAGE_FILE, run_page(run))
    return {
        "page": out / PAGE_FILE,
        "summary": out / SUMMARY_FILE,
        "samples": out / SERIES_FILE,
        **_captures(run),
    }


def write_comparison(
    title: str,
    runs: Sequence[RunFacts],
    out: Path,
    missing: Sequence[str] = (),
    over: OverSeeds | None = None,
) -> dict[str, Path]:
    """Writes the comparison of several runs, beside the folders of the runs.

    `missing`: variants without a result. `over`: the variants over several seeds. Raises EmuError.
    """
    artifacts = {"page": out / COMPARISON_PAGE_FILE, "summary": out / COMPARISON_FILE}
    with writing_into(out):
        write_text(artifacts["page"], comparison_page(title, runs, missing, over))
        write_text(artifacts["summary"], comparison_document(runs, missing, over))
    for run in runs:
        artifacts[run.name] = out / run.name
        artifacts |= {f"{run.name} {what}": path for what, path in _captures(run).items()}
    return artifacts


def comparison_document(
    runs: Sequence[RunFacts], missing: Sequence[str] = (), over: OverSeeds | None = None
) -> str:
    """The comparison as JSON, the same as in its file."""
    recordings = {run.name: run.recording for run in runs}
    return to_json(compare(recordings, missing, None if over is None else seeds_document(over)))


def write_models(
    title: str, specs: Sequence[BothModels], document: str, out: Path
) -> dict[str, Path]:
    """Writes the differences of the two models, beside the folders of the runs. Raises EmuError."""
    artifacts = {"page": out / MODELS_PAGE_FILE, "differences": out / MODELS_FILE, "runs": out}
    with writing_into(out):
        write_text(artifacts["page"], models_page(title, specs))
        write_text(artifacts["differences"], document)
    return artifacts


def write_clocks(document: str, out: Path) -> dict[str, Path]:
    """Writes the differences of the real and the virtual clock, beside the folders of the runs.

    Raises EmuError.
    """
    with writing_into(out):
        write_text(out / CLOCKS_FILE, document)
    return {"differences": out / CLOCKS_FILE, "runs": out}


def _captures(run: RunFacts) -> dict[str, Path]:
    return {f"capture {port}": path for port, path in run.recording.captures.items()}
