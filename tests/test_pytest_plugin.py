"""`emu.pytest_plugin`, as used by test authors."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from emu.errors import HostError
from emu.lab.probe import require

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
EMU = (sys.executable, "-m", "emu.cli.main")
EXAMPLE = ROOT / "examples/test_incast.py"
SPEC = """
topology: {kind: dumbbell, hosts_per_side: 1}
traffic: [{name: flow, pattern: pair, from: h1, to: h2, op: write, size: 64KB}]
"""
HEAD = "import pytest\nfrom emu.testing import expect\n"


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a spec, in which the test writes and runs other tests."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (pytester.path / "pair.emu.yml").write_text(SPEC)
    return pytester


def _run(tests: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    tests.makepyfile(HEAD + body)
    clock = () if "--emu-clock" in options else ("--emu-clock", "virtual")
    return tests.runpytest_subprocess("-p", "no:cacheprovider", *clock, *options)


def test_the_example_is_in_the_documentation() -> None:
    """The text is the same."""
    assert EXAMPLE.read_text().strip() in (ROOT / "docs/guide/tests.md").read_text()


@pytest.mark.parametrize("clock", ["virtual", "both"])
def test_the_example_passes(tests: pytest.Pytester, clock: str) -> None:
    """It runs on the virtual clock with two workers, and on both clocks."""
    if clock == "both":
        _need_labs()
    options = ("-n", "2") if clock == "virtual" else ("--emu-slowdown", "8000")
    ran = tests.runpytest_subprocess("--emu-clock", clock, *options, str(EXAMPLE.parent))
    outcomes = ran.parseoutcomes()
    if clock == "virtual":
        assert outcomes["passed"] == 2
    else:  # a busy machine may be too slow, which is not a failure
        assert outcomes["passed"] + outcomes.get("xfailed", 0) == 4


TOO_FAST = """
@pytest.mark.fabric('pair.emu.yml')
def test_too_fast(fabric):
    expect(fabric.run(capture=['left:h1'])).goodput(flow='flow', at_least='99Gbit')
"""
TOO_SLOW = "expected: goodput of flow at least 99 Gb/s; measured: * Gb/s"


def test_a_failed_threshold_has_a_readable_report(
    tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expected and the measured value come first, and all files are kept."""
    monkeypatch.setenv("COLUMNS", "200")
    ran = _run(tests, TOO_FAST, "--emu-artifacts", "kept")
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(
        [
            "*_ test_too_fast?virtual? _*",
            f"FAILED: {TOO_SLOW}",
            "pair: Offered: 1 flow, 64 KB. Finished: 1 flow, 64 KB. Fidelity ok: *",
            f"E *{TOO_SLOW}",
            "*- fabric: pair -*",
            "*- last 2 events: pair -*",
            "* 0 ns *flow-started *flow *src=h1 dst=h2 bytes=64000*",
            "* us *flow-completed *",
            f"FAILED *::test_too_fast?virtual? - *{TOO_SLOW}",
        ]
    )
    heading = next(n for n, line in enumerate(ran.outlines) if "_ test_too_fast" in line)
    assert ran.outlines[heading + 1].startswith("FAILED: expected: goodput")
    (folder,) = (tests.path / "kept").iterdir()
    kept = {path.name for path in (folder / "run1").iterdir()}
    assert kept >= {"summary.json", "series.npz", "report.html", "left-h1.pcapng"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--tb=line"], f"*test_*.py:*: *{TOO_SLOW}"),
        (["--tb=short", "-n", "1"], f"FAILED: {TOO_SLOW}"),
        (["--tb=native"], f"FAILED: {TOO_SLOW}"),
    ],
)
def test_every_traceback_style_shows_the_reason(
    tests: pytest.Pytester, options: list[str], told: str
) -> None:
    """The styles are one line, another process, and Python's own. JUnit XML has the reason, too."""
    ran = _run(tests, TOO_FAST, "--junitxml", "junit.xml", *options)
    ran.stdout.fnmatch_lines([told])
    (failure,) = ElementTree.parse(tests.path / "junit.xml").iter("failure")
    assert "expected: goodput of flow at least 99 Gb/s" in failure.get("message", "")


def test_a_failed_assertion_comes_first(tests: pytest.Pytester) -> None:
    """The results of all runs follow in order."""
    body = (
        "@pytest.mark.fabric('pair.emu.yml')\n"
        "def test_two(fabric):\n"
        "    runs = [fabric.run(name=name) for name in ('one', 'two')]\n"
        "    assert runs[0].completed == 2\n"
    )
    ran = _run(tests, body)
    ran.stdout.fnmatch_lines(
        ["FAILED: AssertionError: assert 1 == 2", "one: Offered: *", "two: Offered: *", "*> *"]
    )
    ran.stdout.fnmatch_lines(["*- fabric: one -*", "*- fabric: two -*"])


@pytest.mark.parametrize("every", ["", "all"])
def test_an_unselected_clock_skips_with_the_reason(
    tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, every: str
) -> None:
    """With EMU_REQUIRE=all the test fails, as for missing features."""
    monkeypatch.setenv("EMU_REQUIRE", every)
    body = "@pytest.mark.fabric('pair.emu.yml', clock='real')\ndef test_live(fabric): ...\n"
    ran = _run(tests, body, "-rs")
    assert ran.parseoutcomes() == ({"errors": 1} if every else {"skipped": 1})
    ran.stdout.fnmatch_lines(["*needs the real clock; add --emu-clock=real or --emu-clock=both*"])


def test_an_unknown_clock_is_an_error(tests: pytest.Pytester) -> None:
    body = "@pytest.mark.fabric('pair.emu.yml', clock='reel')\ndef test_live(fabric): ...\n"
    ran = _run(tests, body)
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*there is no clock 'reel'; write one of virtual, exact, real*"])


@pytest.mark.parametrize("slowdown", ["0", "many"])
def test_an_invalid_slowdown_is_refused(tests: pytest.Pytester, slowdown: str) -> None:
    ran = _run(tests, "def test_nothing(): ...\n", f"--emu-slowdown={slowdown}")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines([f"*--emu-slowdown: {slowdown} is no slowdown; write a number*"])


def test_a_failed_tests_fabric_can_be_kept(
    tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lab has the test's name and changes, and stays up until `emu down`."""
    _need_labs()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tests.path))
    body = (
        "@pytest.mark.fabric('pair.emu.yml', slowdown=500, topology={'hosts_per_side': 2})\n"
        "def test_too_fast(fabric):\n"
        "    expect(fabric.run()).goodput(flow='flow', at_least='99Gbit')\n"
    )
    ran = _run(tests, body, "--emu-keep")
    try:
        ran.stdout.fnmatch_lines(["its fabric is up, without traffic, as test_too_fast-virtual:"])
        pinged = tests.run(*EMU, "exec", "h1", "ping", "-c", "1", "-W", "5", "h4")
        assert pinged.ret == 0
    finally:
        assert tests.run(*EMU, "down", "test_too_fast-virtual").ret == 0


def test_the_marker_changes_keys_of_the_spec(tests: pytest.Pytester) -> None:
    """A marker acts like a variant, and a run may change more keys."""
    body = (
        "@pytest.mark.fabric('pair.emu.yml', hosts={'nic': {'mtu': 1024}})\n"
        "def test_packets(fabric):\n"
        "    assert fabric.run().counter('h1', 'tx_packets') == -(-64_000 // 1024)\n"
        "    more = [{**fabric.spec.to_mapping()['traffic'][0], 'size': '128KB'}]\n"
        "    run = fabric.run(traffic=more)\n"
        "    assert (run.offered, run.completed) == (1, 1)\n"
        "    assert run.counter('h1', 'tx_packets') == 125\n"
    )
    _run(tests, body).assert_outcomes(passed=1)


def test_marker_errors_read_like_those_of_a_spec(tests: pytest.Pytester) -> None:
    """The error suggests the nearest key before anything runs."""
    body = (
        "@pytest.mark.fabric('pair.emu.yml', switchez={'pfc': 'off'})\n"
        "def test_never(fabric): ...\n"
        "def test_which(fabric): ...\n"
    )
    ran = _run(tests, body)
    ran.assert_outcomes(errors=2)
    ran.stdout.fnmatch_lines(["*switchez: unknown key (did you mean 'switches'?)*"])
    ran.stdout.fnmatch_lines(["*which fabric? write @pytest.mark.fabric('FILE.emu.yml')*"])


def test_missing_features_skip_with_the_remedy(
    tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With EMU_REQUIRE=all the test fails."""
    body = "@pytest.mark.needs('OpenSM')\ndef test_subnet(): ...\n"
    tests.makeconftest(
        "from emu.lab import probe\n"
        "from dataclasses import replace\n"
        "probe.PROBES = tuple(replace(p, find_missing=lambda: 'opensm not installed')\n"
        "                     for p in probe.PROBES)\n"
    )
    skipped = _run(tests, body, "-rs")
    skipped.assert_outcomes(skipped=1)
    skipped.stdout.fnmatch_lines(["*needs OpenSM: opensm not installed; *apt-get install*"])
    monkeypatch.setenv("EMU_REQUIRE", "all")
    assert _run(tests, body).parseoutcomes().keys() & {"errors", "failed"}


def test_a_short_test_of_an_incast_passes(tests: pytest.Pytester) -> None:
    """Switch keys stand alone, and senders and the list of traffic are left out.

    The header names versions.
    """
    (tests.path / "leaf-spine-2x4.emu.yml").write_text(
        "topology: {kind: leaf-spine, spines: 2, leaves: 3, hosts_per_leaf: 3}\n"
        "switches: {pfc: {priorities: [3], xoff: 48KB, xon: 32KB}, ecn: {}}\n"
    )
    tests.makepyfile(
        """
        import pytest
        from emu.testing import expect, incast

        @pytest.mark.fabric("leaf-spine-2x4.emu.yml", ecn={"kmin": "50KB"})
        def test_incast_is_lossless(fabric):
            run = fabric.run(traffic=incast(to="h1", size="256KB"), duration="20ms")
            assert run.flows.completed == 8
            assert run.delta("leaf1:h2", "tx_prio3_pause") > 0
            expect(run).lossless(priority=3)
        """
    )
    ran = tests.runpytest_subprocess("-p", "no:cacheprovider", "--emu-clock", "virtual")
    ran.assert_outcomes(passed=1)
    ran.stdout.fnmatch_lines(
        [
            "emu: clock virtual, slowdown of each spec, seed of each spec",
            "emu: kernel *, Open vSwitch *, iproute2 *, clang *",
        ]
    )


FIXTURES = """
from emu.testing import eventually
import os
import pytest

pytestmark = pytest.mark.fabric('pair.emu.yml', hosts={'nic': {'mtu': 1024}})

def test_verbs(lab):
    assert lab.spec.hosts.nic.mtu == 1024
    assert lab.spec.seed == 5
    assert lab.host('h1').rdma.alloc_pd()

def test_time(manual_clock):
    assert manual_clock.now_ns == 0
    eventually(lambda: manual_clock.finished, within='50us', clock=manual_clock)

def test_text(golden):
    golden('text', 'as it was')

@pytest.mark.root
def test_root():
    assert os.geteuid() == 0

@pytest.mark.slow
@pytest.mark.timing
def test_long(): ...
"""


def test_other_fixtures_and_markers_work(tests: pytest.Pytester) -> None:
    """`--update-golden` writes golden files. The summary gives the reason of skips once."""
    tests.makeconftest("import os\nos.geteuid = lambda: 1000\n")
    ran = _run(tests, FIXTURES, "--strict-markers", "--emu-seed=5", "--update-golden")
    ran.assert_outcomes(passed=4, skipped=1)
    ran.stdout.fnmatch_lines(
        ["*= what tests were skipped for =*", "1 skipped: needs root; run pytest as root"]
    )
    (tests.path / "golden/text").write_text("as it was not")
    _run(tests, FIXTURES, "-k", "text").assert_outcomes(failed=1, deselected=4)


def test_an_unknown_need_is_an_error(tests: pytest.Pytester) -> None:
    ran = _run(tests, "@pytest.mark.needs('openssm')\ndef test_subnet(): ...\n")
    ran.stdout.fnmatch_lines(["*needs('openssm'): `emu check` knows no such thing*"])


def _need_labs() -> None:
    if os.environ.get("EMU_REQUIRE") == "all":
        return
    try:
        require("namespaces", "veth", "mininet", "Open vSwitch")
    except HostError as error:
        pytest.skip(f"needs {error}")


def test_the_clock_is_chosen_where_none_is_named(tests: pytest.Pytester) -> None:
    """As for `emu run`: exact, virtual for what a lab does not suit. The header says so."""
    _need_labs()
    tests.makepyfile(
        """
        import pytest

        @pytest.mark.fabric("pair.emu.yml")
        def test_fabric(fabric):
            assert fabric.run().recording.clock == fabric.clock == "exact"

        @pytest.mark.fabric("pair.emu.yml", payload="elided")
        def test_another(fabric):
            assert fabric.run().recording.clock == "virtual"

        @pytest.mark.fabric("pair.emu.yml", clock="virtual")
        def test_one_clock(fabric):
            assert fabric.clock == "virtual"

        @pytest.mark.fabric("pair.emu.yml", clock="real")
        def test_unselected(fabric):
            raise AssertionError
        """
    )
    ran = tests.runpytest_subprocess("-p", "no:cacheprovider")
    ran.assert_outcomes(passed=3, skipped=1)
    ran.stdout.fnmatch_lines(["emu: clock exact for specs that suit a lab,*"])
