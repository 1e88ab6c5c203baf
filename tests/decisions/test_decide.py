"""Whole decisions: from a spec to sentences that are true, by the command and from Python."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest
from click.testing import CliRunner

import emu
from emu.cli.main import cli
from emu.decisions.candidates import candidates_of, host_rate_bps
from emu.errors import ExitCode, SpecError, UsageError
from emu.explain.results_schema import schema
from emu.spec.model import load_spec
from tests.support.waiting import eventually

pytest.importorskip("distributed", reason="needs emu[sweep]")

SPEC = """
name: small
payload: elided
topology:
  kind: leaf-spine
  spines: 2
  leaves: 2
  hosts_per_leaf: 4
  links: {host: {rate: 100Gbit, length: 5m}, fabric: {rate: 100Gbit, length: 5m}}
switches: {buffer: 3MB}
traffic:
  - {name: sum, pattern: all-reduce, algorithm: ring, among: all, size: 1MB}
  - {name: in, pattern: incast, from: h2-h7, to: h1, size: 200KB}
"""
ALONE = [
    {"name": "sum", "pattern": "all-reduce", "algorithm": "ring", "among": "all", "size": "8MB"}
]
PRICES = """
currency: EUR
items:
  - {item: nic, fabric: ib, price: 30, watts: 10}
  - {item: nic, price: 20, watts: 10}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decide")
    (folder / "small.emu.yml").write_text(SPEC)
    (folder / "prices.yml").write_text(PRICES)
    return folder


@pytest.fixture(scope="module")
def decision(files: Path) -> emu.Decision:
    return of_three(files, workers=2)


def of_three(files: Path, **more: Any) -> emu.Decision:
    """In one folder, so that no run is done twice."""
    return emu.decide(
        files / "small.emu.yml",
        ["ib", "roce-lossless", "roce-lossy"],
        prices=files / "prices.yml",
        changes="failures",
        grow={"topology.leaves": [3]},
        out=files / "out",
        **more,
    )


def test_figures_are_those_of_single_runs(decision: emu.Decision, files: Path) -> None:
    """Of the specs that the decision gives, each run by itself."""
    for name in ("ib", "roce-lossless", "roce-lossy"):
        spec = decision.spec(name)
        took = [
            emu.run(spec, clock="virtual", set={"seed": seed}).flows.query("traffic == 'sum'")
            for seed in range(spec.seed, spec.seed + 5)
        ]
        mean = sum(int(flows.end_ns.max()) for flows in took) / len(took)
        assert decision.fabrics.value[name] == pytest.approx(mean, rel=1e-3)


def test_the_best_is_the_mark(decision: emu.Decision) -> None:
    fabrics = decision.fabrics
    best = str(fabrics.value.idxmin())
    assert fabrics.behind[best] == 0
    assert fabrics.low.le(fabrics.value).all()
    assert fabrics.value.le(fabrics.high).all()
    assert decision.recommended in fabrics.index
    assert fabrics.cost.to_dict() == {"ib": 240, "roce-lossless": 160, "roce-lossy": 160}


def test_every_sentence_stands_on_a_figure(decision: emu.Decision) -> None:
    assert decision.reasons[0].startswith(f"Recommended: {decision.recommended}.")
    assert all(re.search(r"\d", sentence) for sentence in decision.reasons[:3])
    assert all(sentence.endswith(".") for sentence in [*decision.reasons, *decision.changes])
    assert "What would change it:" in str(decision)


def test_another_workload_turns_the_recommendation(files: Path) -> None:
    """Beside an incast InfiniBand is faster; a ring that is alone fills all cables alike, so that
    cost decides."""

    def recommended(**changes: object) -> str | None:
        return emu.decide(
            files / "small.emu.yml",
            ["ib", "roce-lossless"],
            prices=files / "prices.yml",
            changes="none",
            grow=False,
            workers=1,
            set=changes,
        ).recommended

    assert recommended() == "ib"
    assert recommended(traffic=ALONE) == "roce-lossless"


def test_growth_has_a_row_for_each_size_and_fabric(decision: emu.Decision) -> None:
    growth = decision.growth
    assert growth.hosts.tolist() == [12] * 3
    assert growth.fabric.tolist() == ["ib", "roce-lossless", "roce-lossy"]
    assert (growth.value > decision.fabrics.value.min()).all()


def test_the_document_and_the_page_have_all_of_it(decision: emu.Decision) -> None:
    document = json.loads((decision.folder / "decide.json").read_text())
    jsonschema.validate(document, schema("decision"))
    assert document["schema"] == "emu.decision/1"
    assert document["recommended"] == decision.recommended
    assert document["reasons"] == decision.reasons
    assert [own["name"] for own in document["fabrics"]] == decision.fabrics.index.tolist()
    page = decision.page().read_text()
    for title in ("What would change it", "What failures cost", "as the cluster grows", "cost"):
        assert title in page
    assert "http" not in re.sub(r"http://www.w3.org/\S+", "", page)


def test_a_decision_goes_on_in_its_folder(decision: emu.Decision, files: Path) -> None:
    words = ["decide", str(files / "small.emu.yml"), "--fabrics", "ib,roce-lossless,roce-lossy"]
    words += ["--prices", str(files / "prices.yml"), "--changes", "failures", "--json", "--quiet"]
    words += ["--grow", "topology.leaves=3", "--out", str(decision.folder)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["computed"] == 0
    assert document["reasons"] == decision.reasons
    assert "The fabrics beside each other" in done.stderr


def test_a_decision_that_is_ended_says_that_it_goes_on(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = [sys.executable, "-m", "emu.cli.main", "decide", str(files / "small.emu.yml")]
    words += ["--fabrics", "ib,roce-lossy", "--seeds", "50", "--workers", "1", "--out", str(out)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    eventually(lambda: len(list(out.glob("runs/*.parquet"))) >= 2)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED, errors
    assert "the same command goes on with the runs that are done" in errors


def test_rates_multiply_the_fabrics(files: Path) -> None:
    decided = emu.decide(
        files / "small.emu.yml",
        ["ib"],
        rates=["100Gbit", "4x HDR"],
        changes="none",
        grow=False,
        workers=1,
        by="in.last_completion",
    )
    one, two = decided.fabrics.index
    assert (one, two) == ("ib@100Gbit", "ib@200Gbit")
    assert 1.9 < decided.fabrics.value[one] / decided.fabrics.value[two] < 2.1
    assert decided.recommended == two


def test_a_search_gives_the_tuned_fabric_its_settings(files: Path) -> None:
    decided = emu.decide(
        files / "small.emu.yml",
        ["roce-lossless", "roce-tuned"],
        changes="none",
        grow=False,
        trials=5,
        workers=2,
        vary=["hosts.nic.roce_cc_ecn.rpg_ai_rate"],
        out=files / "tuned",
    )
    fabrics = decided.fabrics
    assert (files / "tuned/tune-100Gbit/tune.html").exists()
    assert decided.recommended == "roce-tuned"
    assert fabrics.value["roce-tuned"] < fabrics.value["roce-lossless"]
    assert any(sentence.startswith("Its settings: ") for sentence in decided.reasons)
    assert any(sentence.startswith("Without its settings") for sentence in decided.changes)
    tuned, plain = decided.spec("roce-tuned"), decided.spec("roce-lossless")
    assert tuned.seed == plain.seed
    assert tuned != plain


def test_a_check_that_no_fabric_passes_leaves_none(files: Path) -> None:
    words = ["decide", str(files / "small.emu.yml"), "--fabrics", "ib,roce-lossy", "--quiet"]
    words += ["--changes", "none", "--grow", "none", "--workers", "1", "--out", str(files / "none")]
    done = CliRunner().invoke(cli, [*words, "--set", "verify=[{finish: {traffic: sum, by: 1us}}]"])
    assert done.exit_code == 1
    assert "No fabric is recommended" in done.stdout
    assert "ib is no choice: checks fail with 5 of 5 seeds." in done.stdout
    assert "Traceback" not in done.output


def test_all_mistakes_are_found_at_once(files: Path) -> None:
    with pytest.raises(UsageError) as caught:
        emu.decide(
            files / "small.emu.yml",
            ["ib", "ib", "roze"],
            rates=["1Gbit", "1Gbit"],
            margin=7,
            changes="some",
            seeds=2,
            trials=0,
            grow={"a b": [1], "": [2, 3]},
            prices=files / "none.yml",
        )
    text = str(caught.value)
    for what in (
        "fabrics: there is no fabric 'roze'",
        "fabrics: ib is there twice",
        "rates: 1Gbit is there twice",
        "margin: must be a share",
        "changes: there is no choice 'some'",
        "seeds: 2 are too few",
        "trials: there must be one",
        "grow : is no key",
        "none.yml: cannot be read",
    ):
        assert what in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--rates", "fast"], "--rates fast: "),
        (["--margin", "much"], "--margin: 'much' is no share; write it like 5% or 0.05"),
        (["--longest-run", "20"], "--longest-run: "),
        (["--grow", "leaves"], "--grow leaves: is no key with values"),
        (["--by", "nonsense"], "the usual ones are sum.iteration_ns"),
        (["--by", "speed"], "--by: there is no figure 'speed'"),
        (["--fabrics", "ib,roce-lossy", "--by", "pause_frames"], "InfiniBand has no such count"),
        (["--fabrics", "ib,roce-lossy", "--by", "credit_wait_ns"], "Ethernet has no such count"),
        (["--vary", "switches.ecn.kmin"], "--vary: only roce-tuned has a search"),
        (["--fabrics", ""], "--fabrics: name one at least"),
    ],
)
def test_wrong_words_are_refused_with_advice(files: Path, words: list[str], says: str) -> None:
    command = ["decide", str(files / "small.emu.yml"), "--changes", "none", "--fabrics", "ib"]
    done = CliRunner().invoke(cli, [*command, "--out", str(files / "wrong"), *words])
    assert isinstance(done.exception, UsageError)
    assert says in str(done.exception)


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("switches.ecn.kmni=20KB..40KB", "switches.ecn.kmni"),
        ("switches.ecn.kmin=20KB", "has fewer than two values"),
        ("hosts.nic.mtu", "hosts.nic.mtu"),
    ],
)
def test_keys_that_cannot_be_searched_start_nothing(files: Path, key: str, says: str) -> None:
    folder = files / "unsearched"
    words = ["--fabrics", "ib,roce-tuned", "--vary", key, "--out", str(folder)]
    done = CliRunner().invoke(cli, ["decide", str(files / "small.emu.yml"), *words])
    assert isinstance(done.exception, UsageError | SpecError)
    assert says in str(done.exception)
    assert not folder.exists()


def test_unknown_fabrics_in_prices_are_named(files: Path, tmp_path: Path) -> None:
    file = tmp_path / "p.yml"
    file.write_text("currency: EUR\nitems: [{item: nic, fabric: rose, price: 1}]\n")
    with pytest.raises(
        UsageError, match=r"p\.yml: there is no fabric 'rose' \(did you mean 'roce'"
    ):
        emu.decide(files / "small.emu.yml", prices=file)


def test_a_spec_without_traffic_on_the_fabric_is_refused() -> None:
    spec = emu.Spec(topology={"kind": "dumbbell", "hosts_per_side": 1})
    with pytest.raises((UsageError, SpecError), match=r"no traffic"):
        emu.decide(spec)


def test_spec_of_a_fabric_is_one_that_runs(decision: emu.Decision) -> None:
    with pytest.raises(UsageError, match=r"there is no fabric 'ibb'"):
        decision.spec("ibb")
    assert isinstance(decision.fabrics, pd.DataFrame)


def test_candidates_of_a_file_are_those_of_the_decision(
    files: Path, decision: emu.Decision
) -> None:
    spec = load_spec(files / "small.emu.yml")
    (own,), _ = candidates_of(spec, ["ib"], [host_rate_bps(spec)])
    assert own.spec == decision.spec("ib")


@pytest.mark.parametrize("margin", [0.0, 0.05, 0.5, 1.0])
def test_margins_in_sentences_hold_when_they_are_given(
    decision: emu.Decision, files: Path, margin: float
) -> None:
    for sentence in of_three(files, margin=margin, workers=1).changes:
        found = re.match(
            r"With a margin of ([\d.]+) %(?: or less)? it would be ([\w@-]+)", sentence
        )
        if found:
            again = of_three(files, margin=float(found[1]) / 100, workers=1)
            assert again.recommended == found[2]


def test_a_figure_that_is_0_everywhere_decides_nothing(files: Path) -> None:
    decided = emu.decide(
        files / "small.emu.yml",
        ["ib", "roce-lossless"],
        prices=files / "prices.yml",
        by="retransmitted_packets",
        changes="none",
        grow=False,
        workers=1,
    )
    assert decided.recommended == "roce-lossless"
    assert decided.fabrics.behind.tolist() == [0, 0]


def test_assumptions_about_switches_are_named(decision: emu.Decision, files: Path) -> None:
    assert any("600ns, store-and-forward on roce-lossless" in own for own in decision.changes)
    same = {"switches.latency": "300ns", "switches.switching": "cut-through"}
    decided = emu.decide(
        files / "small.emu.yml", ["ib", "roce-lossy"], changes="none", grow=False, set=same
    )
    assert not any("assumed" in own for own in decided.changes)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"hosts": {"stack": "tcp"}}, "TCP"),
    ],
)
def test_specs_that_cannot_be_decided_say_why(files: Path, keys: object, says: str) -> None:
    with pytest.raises((UsageError, SpecError), match=says):
        emu.decide(files / "small.emu.yml", ["ib"], set=keys)  # type: ignore[arg-type]


def test_a_variant_with_another_workload_is_no_candidate(files: Path) -> None:
    variants = {"less": {"traffic": ALONE}}
    with pytest.raises(UsageError, match=r"its traffic is not that of the spec"):
        emu.decide(files / "small.emu.yml", ["less"], set={"compare": variants})


@pytest.mark.parametrize(
    ("grow", "says"),
    [
        ({"foo.bar": [4]}, "grow foo.bar 4: "),
        ({"topology.leaves": [9999]}, "grow topology.leaves 9999: "),
        ({"topology.leaves": [4, 4]}, "4 is there twice"),
        ({"topology.leaves": "45"}, "must be a list of values"),
        ({"topology.leaves": []}, "must be a list of values"),
    ],
)
def test_sizes_that_cannot_be_start_nothing(files: Path, grow: object, says: str) -> None:
    with pytest.raises((UsageError, SpecError), match=says):
        emu.decide(files / "small.emu.yml", ["ib"], grow=grow)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fabrics", ["ib", 3]),
        ("fabrics", None),
        ("rates", 400),
        ("seeds", "5"),
        ("changes", ["none"]),
        ("grow", "topology.leaves=4"),
        ("longest_run", 20),
        ("prices", 5),
        ("workers", "x"),
        ("workers", 0),
        ("by", 5),
    ],
)
def test_wrong_types_are_refused_in_words(files: Path, name: str, value: object) -> None:
    with pytest.raises(UsageError, match=name):
        emu.decide(files / "small.emu.yml", **{name: value})  # type: ignore[arg-type]
