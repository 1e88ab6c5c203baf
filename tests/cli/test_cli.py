"""Verbs and options that need no lab."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from emu.cli.compare import command as compare
from emu.cli.main import VERBS, cli
from emu.cli.run import command as run
from emu.cli.schema import command as schema
from emu.cli.validate import command as validate
from emu.errors import ExitCode, SpecError, UsageError
from emu.runtime.record import record
from emu.runtime.virtual import VirtualRunner

ROOT = Path(__file__).parents[2]
INCAST = str(ROOT / "topologies" / "incast.emu.yml")
PAIR = str(ROOT / "topologies" / "pair.emu.yml")
TCP = str(ROOT / "topologies" / "tcp-baseline.emu.yml")
BROKEN = str(Path(__file__).parents[1] / "spec" / "errors" / "kinds.emu.yml")


def test_validate_summarises_a_valid_spec() -> None:
    """The summary is one line of text."""
    result = CliRunner().invoke(validate, [INCAST])
    assert result.exit_code == 0
    size, needs = result.stdout.splitlines()
    assert size.endswith(
        "incast.emu.yml: ok: roce, 8 hosts, 4 switches, 12 cables, 8 flows, 15 MB in all; "
        "variants roce-lossy, roce-pfc, roce-dcqcn, roce-mistuned, ib"
    )
    assert re.search(
        r"on the virtual clock a run takes about \d+ MB and \d+ s for each variant$", needs
    )


def test_json_is_one_document() -> None:
    """`--set` applies to it as well."""
    result = CliRunner().invoke(validate, [INCAST, "--json", "--set", "traffic.victim.size=2MB"])
    document = json.loads(result.stdout)
    assert document["schema"] == "emu.validate/1"
    assert (document["ok"], document["flows"], document["bytes"]) == (True, 8, 16_000_000)


def test_findings_are_the_text_of_a_spec_error() -> None:
    """The main program prints the error and exits with 2."""
    result = CliRunner().invoke(validate, [BROKEN])
    assert isinstance(result.exception, SpecError)
    assert "topology.kind: 'leaf-spin' is not known" in str(result.exception)
    assert result.stdout == ""


def test_json_also_holds_the_findings() -> None:
    """The findings are also those of the error."""
    result = CliRunner().invoke(validate, [BROKEN, "--json"])
    assert isinstance(result.exception, SpecError)
    document = json.loads(result.stdout)
    assert document["ok"] is False
    assert document["findings"] == result.exception.findings


def test_schema_prints_the_json_schema() -> None:
    """Editors use this schema."""
    result = CliRunner().invoke(schema)
    assert result.exit_code == 0
    assert "hosts_per_leaf" in json.loads(result.stdout)["$defs"]["LeafSpine"]["properties"]


def test_flows_of_tcp_count_like_others() -> None:
    for stack in ("rdma", "tcp"):
        result = CliRunner().invoke(validate, [TCP, "--set", f"hosts.stack={stack}"])
        assert "3 flows, 6 MB in all; variants roce, tcp, ib, ipoib" in result.stdout


def test_the_virtual_clock_refuses_tcp_before_any_run(tmp_path: Path) -> None:
    """The kernel's TCP runs in real time. Not even the first variant of a comparison is run."""
    words = [TCP, "--clock", "virtual", "--out", str(tmp_path)]
    both = ["--clocks", *words[:1], *words[3:]]
    for verb, line in (
        (run, [*words, "--set", "hosts.stack=tcp"]),
        (compare, words),
        (compare, both),
    ):
        error = CliRunner().invoke(verb, line).exception
        assert isinstance(error, UsageError)
        assert str(error) == (
            "stack: tcp is the TCP of this machine's kernel, whose time is real; run it on the "
            "real clock alone, or use stack: rdma"
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ranks", ["0", "-1"])
def test_mpirun_needs_at_least_one_rank(ranks: str) -> None:
    """The check needs no lab."""
    ended = CliRunner().invoke(cli, ["mpirun", "-n", ranks, "--", "true"])
    assert ended.exit_code == ExitCode.USAGE
    assert f"Invalid value for '-n': {ranks} is not in the range" in ended.output


def test_clocks_excludes_clock() -> None:
    """The error names both options."""
    words = [PAIR, "--clocks", "--clock", "virtual"]
    error = CliRunner().invoke(compare, words).exception
    assert isinstance(error, UsageError)
    assert str(error) == "--clock: --clocks runs on both; leave one of the two out"


@pytest.mark.parametrize(("seeds", "folders"), [(1, ["pair"]), (2, ["pair/seed-1", "pair/seed-2"])])
def test_clocks_writes_every_run_to_its_folder(
    seeds: int, folders: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders are named by clock, variant and, with several, seed.

    EMU_COMPARE_CLOCK has no effect.
    """
    monkeypatch.setattr(
        "emu.cli.compare.record",
        lambda name, spec, _, out, **options: record(name, spec, VirtualRunner(), out, **options),
    )
    monkeypatch.setenv("EMU_COMPARE_CLOCK", "virtual")
    words = ["compare", PAIR, "--clocks", "--seeds", str(seeds), "--out", str(tmp_path)]
    ended = CliRunner().invoke(cli, words)
    assert ended.exit_code == 0, ended.output
    assert {path.parent for path in tmp_path.rglob("summary.json")} == {
        tmp_path / clock / folder for folder in folders for clock in ("real", "virtual")
    }


def test_the_page_of_commands_names_every_verb() -> None:
    """It names no other verbs. A cell may have several: `emu up SPEC`, `down`, ..."""
    text = (ROOT / "docs/guide/commands.md").read_text()
    told = {verb for verb in VERBS if re.search(rf"`emu {verb}\b|, `{verb}`", text)}
    assert told == {*VERBS} - {"mn"}
    assert {*re.findall(r"`emu ([a-z-]+)", text)} <= {*VERBS}


CUT_SHORT = """
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 20MB}]
time_limit: 100us
compare: {one: {}, other: {}}
"""


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ([], 1),
        (["unfinished=allow"], 0),
        (["unfinished=allow", "compare.one={verify: [{completed: all}]}"], 1),
    ],
)
def test_an_unfinished_variant_fails_a_comparison(
    settings: list[str], code: int, tmp_path: Path
) -> None:
    """The spec may allow unfinished flows if it has no check of completion."""
    spec = tmp_path / "cut.emu.yml"
    spec.write_text(CUT_SHORT)
    words = [str(spec), "--clock", "virtual", "--out", str(tmp_path / "out")]
    words += [word for setting in settings for word in ("--set", setting)]
    ended = CliRunner().invoke(compare, words)
    assert ended.exit_code == code
    assert ("every flow completed" in ended.output) == (code == 1)
    assert "one did not finish 1 of 1 flow" in ended.output
