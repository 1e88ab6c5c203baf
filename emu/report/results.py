"""The page of results: what shipped specs are expected to show, and what they showed here.

A result is a spec with an `about:` section. Its checks judge each of its runs (one run, or those
of its `compare:` section). The page gives the measured values beside the expected ones, for each
clock, with one picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from emu.output_dir import write_text, writing_into
from emu.report.charts import Chart, chart_named
from emu.report.markdown import code, link, plain
from emu.report.run_view import RunFacts
from emu.report.standalone import standalone_svg
from emu.report.verdict import CheckResult
from emu.spec.about import About

_HEAD = """\
# Results

{command} made this page: every number below was measured. Each line is a check
in the spec's `verify:` section, so `emu run` and `emu compare` report the same.

| id | result | expected | {clocks} | source |
|---|---|---|{rules}|---|
"""


@dataclass(frozen=True)
class Result:
    """One spec's runs. `runs`: by clock, in the order of its variants."""

    about: About
    spec: Path
    runs: Mapping[str, Sequence[RunFacts]]


def write_results(results: Sequence[Result], page: Path, command: str) -> None:
    """Writes the page, and a folder of pictures beside it. Raises EmuError."""
    pictures = page.parent / "pictures"
    with writing_into(pictures, "--page"):
        for result in results:
            _draw(result, pictures)
        write_text(page, results_page(results, command))


def _draw(result: Result, folder: Path) -> None:
    chart = _chart(result)
    if chart is not None:
        write_text(folder / f"{result.about.id}.svg", standalone_svg(chart))


def _chart(result: Result) -> Chart | None:
    return chart_named(result.about.plot, next(iter(result.runs.values())))


def results_page(results: Sequence[Result], command: str) -> str:
    """The page's text, in Markdown."""
    clocks = list(dict.fromkeys(clock for result in results for clock in result.runs))
    head = _HEAD.format(
        command=code(command),
        clocks=" | ".join(f"{clock} clock" for clock in clocks),
        rules="|".join("---" for _ in clocks),
    )
    lines = "".join(_summary_line(result, clocks) for result in results)
    return head + lines + "".join(_section(result, clocks) for result in results)


def _summary_line(result: Result, clocks: Sequence[str]) -> str:
    about = result.about
    verdicts = (_verdict(result.runs.get(clock, ())) for clock in clocks)
    head = (link(about.id, f"#{about.id.lower()}"), plain(about.title), plain(about.expected))
    return _row(*head, *verdicts, plain(about.source))


def _verdict(runs: Sequence[RunFacts]) -> str:
    checks = [check.passed for run in runs for check in run.checks]
    if not checks:
        return "not run"
    if None in checks:
        return "inconclusive"
    return "passed" if all(checks) else "**failed**"


def _section(result: Result, clocks: Sequence[str]) -> str:
    about = result.about
    spec = link(result.spec.name, result.spec.name)
    head = f"\n## {about.id}\n\n{plain(about.title)}. {spec}\n\n"
    names = ("run", "check", *(f"{clock} clock" for clock in clocks))
    table = _row(*names) + _row(*("---" for _ in names))
    rows = "".join(_row(*cells) for cells in _checks(result, clocks))
    cure = f"\nCure: {plain(about.cure)}\n" if about.cure else ""
    return f"{head}{table}{rows}{cure}{_picture(result)}"


def _picture(result: Result) -> str:
    """The picture with its caption, which is the only scale that strips have."""
    about, chart = result.about, _chart(result)
    if chart is None:
        return ""
    image = f"\n![{about.plot} of {about.id}](pictures/{about.id}.svg)\n"
    return f"{image}\n{plain(chart.caption)}\n" if chart.caption else image


def _checks(result: Result, clocks: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for place, run in enumerate(next(iter(result.runs.values()))):
        for number in range(len(run.checks)):
            check = {clock: runs[place].checks[number] for clock, runs in result.runs.items()}
            measured = (_measured(check[clock]) if clock in check else "" for clock in clocks)
            yield (plain(run.name), plain(_wanted(check)), *measured)


def _wanted(check: Mapping[str, CheckResult]) -> str:
    """The text of a check. If the tolerance of another clock differs, its end of the text
    follows in parentheses."""
    first, *others = ((clock, own.check) for clock, own in check.items())
    ends = [f"{clock} clock: {_end(text, first[1])}" for clock, text in others if text != first[1]]
    return f"{first[1]} ({'; '.join(ends)})" if ends else first[1]


def _end(text: str, other: str) -> str:
    """The rest of `text` after the words that both texts begin with."""
    words = text.split()
    both = zip(words, other.split(), strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], both)))
    return " ".join(words[same:])


def _measured(check: CheckResult) -> str:
    detail = plain(check.detail)
    return f"**{detail}**" if check.passed is False else detail


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |\n"
