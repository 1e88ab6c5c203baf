"""`emu init`: its specs validate, run without changes, and explain each key."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from emu.cli.compare import command as compare
from emu.cli.init import _PATTERNS, _PRESETS, _TOPOLOGIES, command
from emu.cli.run import command as run
from emu.errors import EmuError, ExitCode
from emu.explain import keys
from emu.spec.congestion_control import CONTROLS
from emu.spec.headroom import reserved_of
from emu.spec.model import Spec, spec_from_text
from emu.spec.presets import PRESETS
from emu.spec.rules.warnings import warnings_of
from emu.spec.topology import LeafSpine
from emu.starter.data import PATTERNS
from emu.starter.shapes import SHAPES


def init(*words: str) -> Result:
    return CliRunner().invoke(command, list(words))


def text_of(words: str) -> str:
    result = init("-o", "-", *words.split())
    assert result.exit_code == 0, result.exception
    return result.stdout


def spec_of(words: str) -> Spec:
    return spec_from_text(text_of(words).encode(), source="made.emu.yml")


def refusal(words: str) -> str:
    result = init("-o", "-", *words.split())
    assert isinstance(result.exception, EmuError)
    assert result.exception.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    return str(result.exception)


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize("topology", _TOPOLOGIES)
def test_every_topology_has_the_requested_hosts(topology: str, fabric: str) -> None:
    """The spec is valid."""
    hosts = {"fat-tree": 16, "torus": 18}.get(topology, 24)
    spec = spec_of(f"--topology {topology} --fabric {fabric} --hosts {hosts}")
    assert len(spec.topology.build().hosts) == hosts
    assert (spec.topology.kind, spec.fabric) == (topology, fabric)


@pytest.mark.parametrize("hosts", [2, 3, 7, 8, 13, 16, 64, 100, 127, 128, 384, 1024, 16384])
def test_leaves_follow_the_number_of_hosts(hosts: int) -> None:
    """A leaf has as many uplinks as hosts, up to the limit on spines."""
    topology = spec_of(f"--hosts {hosts} --size 64KB").topology
    assert isinstance(topology, LeafSpine)
    assert topology.leaves * topology.hosts_per_leaf == hosts
    assert topology.spines == min(topology.hosts_per_leaf, 256)


@pytest.mark.parametrize("rate", ["10Gbit", "100Gbit", "400Gbit", "800Gbit"])
@pytest.mark.parametrize("length", ["2m", "300m"])
def test_a_buffer_holds_the_headroom(rate: str, length: str) -> None:
    """The spec is valid at every rate and cable length."""
    spec = spec_of(f"--rate {rate} --length {length} --hosts 32 --pattern permutation")
    host = spec.topology.build().hosts[0].name
    assert spec.topology.build().cable[spec.topology.build().ports[host][0]].rate_bps > 0


BASES = ["", "--lossy", "--fabric ib", *(f"--preset {preset}" for preset in _PRESETS)]
"""Options that select each kind of fabric."""


def assert_runs(words: str, folder: Path) -> None:
    """Write a spec and run it on the virtual clock, with its checks and variants."""
    path = folder / "made.emu.yml"
    made = init("-o", str(path), *words.split())
    assert made.exit_code == 0, made.exception
    less = ["--set", "traffic.0.count=4"] if "\n    count: " in path.read_text() else []
    arguments = [str(path), "--clock", "virtual", "--out", str(folder / "out"), *less]
    verb = compare if "--compare" in words else run
    result = CliRunner().invoke(verb, arguments, standalone_mode=False)
    assert (result.exception, result.return_value or 0) == (None, 0)


@pytest.mark.parametrize("pattern", _PATTERNS)
@pytest.mark.parametrize("base", BASES)
def test_every_pattern_runs(pattern: str, base: str, tmp_path: Path) -> None:
    size = "" if pattern == "background" else "--size 16KiB"
    assert_runs(f"--hosts 4 --pattern {pattern} {base} {size}", tmp_path)


@pytest.mark.parametrize("cc", CONTROLS)
@pytest.mark.parametrize("base", BASES)
def test_every_congestion_control_runs(cc: str, base: str, tmp_path: Path) -> None:
    """Lossy fabrics are among the bases."""
    assert_runs(f"--cc {cc} {base}", tmp_path)


@pytest.mark.parametrize("rate", ["10Gbit", "100Gbit", "400Gbit"])
def test_a_large_lossy_incast_completes(rate: str, tmp_path: Path) -> None:
    """Without congestion control, retransmissions would be lost until queue pairs give up."""
    assert_runs(f"--lossy --hosts 64 --rate {rate}", tmp_path)


@pytest.mark.parametrize("pattern", ["storage", "all-to-all"])
@pytest.mark.parametrize("base", BASES)
def test_comparisons_of_other_patterns_run(pattern: str, base: str, tmp_path: Path) -> None:
    assert_runs(f"--compare --hosts 4 --pattern {pattern} {base} --size 16KiB", tmp_path)


def test_an_infiniband_ring_does_not_deadlock(tmp_path: Path) -> None:
    """Up/down routing finds no roots in a ring, so the spec names them."""
    assert_runs("--fabric ib --topology ring --hosts 24 --pattern all-to-all", tmp_path)


@pytest.mark.parametrize("base", ["--lossy", "--fabric ib", "--preset dctcp"])
def test_a_comparison_of_many_hosts_runs(base: str, tmp_path: Path) -> None:
    assert_runs(f"--compare --hosts 64 {base}", tmp_path)


@pytest.mark.parametrize(
    ("words", "base", "lossy"),
    [
        ("", 14, 8),
        ("--lossy", 8, 8),
        ("--fabric ib", 14, 8),
        ("--lossy --rate 10Gbit", 9, 9),
        ("--preset dctcp", 8, 8),
    ],
)
def test_timers_are_short_on_lossy_fabrics_only(words: str, base: int, lossy: int) -> None:
    """They are longer than a full buffer takes to drain."""
    spec = spec_of(f"--compare {words}")
    codes = {name: own.host("h1").nic.timeout for name, own in spec.variants().items()}
    assert spec.host("h1").nic.timeout == base
    assert codes.pop("roce-lossy") == lossy
    assert codes.pop("roce-dctcp", lossy) == lossy
    assert {*codes.values()} == {14}


def test_values_other_than_defaults_have_reasons() -> None:
    """The reason is in a comment above the key."""
    text = " ".join(text_of("--lossy --compare").replace("#", "").split())
    assert (
        "the timer alone notices; adaptive retransmission comes to about the same. timeout: 8"
        in text
    )
    assert "a short timer finds messages whose last packet was lost. roce-lossy:" in text


@pytest.mark.parametrize("preset", _PRESETS)
def test_a_preset_has_lossless_rdma(preset: str) -> None:
    """RDMA has a DSCP that the preset maps to a lossless priority, if there is one."""
    spec = spec_of(f"--preset {preset}")
    pfc = PRESETS[preset].pfc
    if pfc is not None:
        assert spec.priority("h1", None) in pfc.priorities
        assert any(check.lossless for check in spec.verify)


@pytest.mark.parametrize("words", ["", "--lossy", "--fabric ib", "--preset nvidia"])
def test_a_comparison_has_four_fabrics(words: str) -> None:
    """The base has no effect on the list."""
    variants = spec_of(f"--compare {words}").variants()
    assert list(variants) == ["roce-lossy", "roce-pfc", "roce-dcqcn", "ib"]
    pfc, dcqcn, ib = (variants[name] for name in ("roce-pfc", "roce-dcqcn", "ib"))
    assert pfc.switch("leaf1").pfc
    assert not pfc.marks_ce
    assert dcqcn.marks_ce
    assert dcqcn.host("h1").nic.cc == "dcqcn-nvidia"
    assert ib.fabric == "ib"


def test_a_comparison_with_the_dctcp_preset_has_dctcp() -> None:
    """The preset has no PFC and marks with DCTCP's single threshold."""
    variants = spec_of("--compare --preset dctcp").variants()
    assert list(variants) == ["roce-lossy", "roce-pfc", "roce-dctcp", "ib"]
    has_pfc = [bool(own.switch("leaf1").pfc) for own in variants.values()]
    assert has_pfc == [False, True, False, False]
    ecn = variants["roce-dctcp"].switch("leaf1").ecn
    assert ecn is not None
    assert (ecn.kmin_given, ecn.kmax_given) == (300_000, 300_000)
    assert variants["roce-dctcp"].host("h1").nic.cc == "dctcp"


@pytest.mark.parametrize("base", ["--fabric ib", "--lossy", "--preset dctcp", ""])
@pytest.mark.parametrize("size", ["--hosts 1024", "--hosts 64 --rate 400Gbit --length 2km"])
def test_a_comparisons_buffers_hold_all_headroom(base: str, size: str) -> None:
    """All Ethernet variants have the same buffer, whether the base has PFC or not."""
    variants = spec_of(f"--compare {base} {size} --size 64KB").variants()
    buffers = {own.switch("leaf1").buffer_bytes for own in variants.values() if own.fabric != "ib"}
    (buffer,) = buffers
    assert buffer >= 2 * reserved_of(variants["roce-pfc"], "leaf1")


@pytest.mark.parametrize(
    "words", ["", "--lossy", "--fabric ib", *(f"--preset {preset}" for preset in _PRESETS)]
)
def test_written_specs_have_no_warnings(words: str) -> None:
    spec = spec_of(f"--compare {words}")
    assert [warnings_of(own) for own in (spec, *spec.variants().values())] == [()] * 5


def test_a_comparison_runs(tmp_path: Path) -> None:
    """Every variant runs."""
    assert_runs("--compare --size 64KB --hosts 4", tmp_path)


def test_each_key_has_its_meaning_in_a_comment() -> None:
    """The text is that of the schema and of `emu explain`."""
    text = " ".join(text_of("--pattern storage").replace("#", "").split())
    for name in ("switches.pfc", "hosts.nic.mtu", "traffic.storage.depth", "topology.leaf-spine"):
        (key,) = keys.matching(tuple(name.split(".")))
        assert key.meaning in text


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    """`--force` overwrites it."""
    path = tmp_path / "mine.emu.yml"
    path.write_text("mine")
    result = init("-o", str(path))
    assert "exists already; choose another -o, or add --force" in str(result.exception)
    assert path.read_text() == "mine"
    assert init("-o", str(path), "--force").exit_code == 0
    assert "name: mine\n" in path.read_text()


def test_the_default_file_name_is_that_of_the_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command has no `-o`."""
    monkeypatch.chdir(tmp_path)
    assert init("--pattern", "pair").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["pair.emu.yml"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--topology fat-tree --hosts 64", "no fat tree has 64 hosts; take --hosts 54 or 128"),
        ("--topology rail --hosts 12", "take --hosts 8 or 16"),
        ("--topology dumbbell --hosts 7", "take --hosts 6 or 8"),
        ("--hosts 257", "cannot be divided among equal leaves; take 264"),
        ("--gpus 4", "--gpus is for rail, not for leaf-spine; leave it out"),
        ("--rate 100", "--rate: '100' is not understood"),
        ("--size 5QB", "--size: '5QB' is not understood"),
        ("--fabric ib --preset nvidia", "InfiniBand has credits"),
        ("--preset nvidia --lossy", "leave out --lossless and --lossy"),
        ("--pattern background --size 1MB", "whose sizes are measured ones"),
        ("--hosts 1000 --pattern all-to-all", "for which 1998 GB of memory are needed"),
    ],
)
def test_impossible_requests_are_refused(words: str, expected: str) -> None:
    """The error suggests a possible value, and no file is written."""
    assert expected in refusal(words)


def test_choices_equal_those_of_the_schema() -> None:
    """The verb repeats them, because it must not import emu.spec to print its help."""
    kinds = keys.matching(("topology",))[0].children
    assert {*_TOPOLOGIES} == SHAPES.keys() == {kind.path[-1] for kind in kinds} - {"graph"}
    assert {*_PATTERNS} == PATTERNS.keys()
    assert {*_PRESETS} == PRESETS.keys()
