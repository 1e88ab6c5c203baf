"""Loading a spec: units, defaults, settings and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emu.errors import SpecError
from emu.spec.model import Spec, load_spec, spec_from_json, spec_from_text
from emu.spec.traffic.patterns import Incast, Pair

ROOT = Path(__file__).parents[2]
READY = sorted((ROOT / "topologies").glob("*.emu.yml"))
INCAST = ROOT / "topologies" / "incast.emu.yml"

SMALL = "topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 2}\n"

NETWORK = "topology: {kind: dumbbell, hosts_per_side: 1}\n"


OF_PARTS = ("converged.emu.yml",)
"""Specs that compare all traffic together with each kind of it alone."""


def spec(text: str, *settings: str) -> Spec:
    return spec_from_text((SMALL + text).encode(), source="small.emu.yml", settings=settings)


@pytest.mark.parametrize("path", READY, ids=lambda path: path.name)
def test_shipped_specs_are_valid(path: Path) -> None:
    """Every shipped spec loads and sends something, and its variants do the same work.

    A variant may use another algorithm or TCP, but has the same entries between the same hosts.
    """
    loaded = load_spec(path)
    assert loaded.workload().operations
    work = [(entry.name, entry.pattern, entry.hosts) for entry in loaded.traffic]
    for variant in loaded.variants().values():
        assert variant.workload().operations or variant.streams().operations
        own = [(entry.name, entry.pattern, entry.hosts) for entry in variant.traffic]
        assert own == work or path.name in OF_PARTS


@pytest.mark.parametrize("path", READY, ids=lambda path: path.name)
def test_json_round_trip_gives_the_same_spec(path: Path) -> None:
    """`to_json` and `spec_from_json` are inverse, also for variants."""
    loaded = load_spec(path)
    for one in (loaded, *loaded.variants().values()):
        again = spec_from_json(one.to_json())
        assert again == one
        assert again.to_json() == one.to_json()
        assert list(again.variants()) == list(one.variants())


def test_units_become_integers() -> None:
    """A spec has strings with units; the model has picoseconds, bytes and bits per second."""
    pfc, ecn = "{xoff: 96KB, xon: 64KB}", "{kmin: 100KB, kmax: 400KB, pmax: 20%}"
    loaded = load_spec(INCAST, [f"switches.pfc={pfc}", f"switches.ecn={ecn}"])
    leaf = loaded.switch("leaf1")
    assert leaf.latency_ps == 600_000
    assert leaf.buffer_bytes == 3_000_000
    assert leaf.pfc is not None
    assert (leaf.pfc.xoff.size_bytes, leaf.pfc.xon_bytes, leaf.pfc.headroom_bytes) == (
        96_000,
        64_000,
        None,
    )
    assert leaf.ecn is not None
    assert (leaf.ecn.kmin_bytes, leaf.ecn.kmax_bytes, leaf.ecn.pmax) == (100_000, 400_000, 0.2)
    assert {(c.rate_bps, c.delay_ps) for c in loaded.topology.build().cables} == {
        (100_000_000_000, 500_000)
    }


def test_a_topology_alone_has_sensible_defaults() -> None:
    """A topology alone gives a lossy RoCE fabric that is named after its file."""
    loaded = spec("")
    assert (loaded.name, loaded.fabric, loaded.plane, loaded.slowdown) == (
        "small",
        "roce",
        "auto",
        "auto",
    )
    assert loaded.time_limit_ps == 100_000_000_000
    leaf, nic = loaded.switch("leaf1"), loaded.host("h1").nic
    assert (leaf.pfc, leaf.ecn, leaf.alpha) == (None, None, 1.0)
    assert (nic.mtu, nic.cc, nic.dscp, nic.window) == (4096, "none", 26, None)
    assert len(loaded.workload().operations) == 0


@pytest.mark.parametrize(
    ("text", "length_ps"),
    [("length: 5m", 25_000), ("delay: 500ns", 500_000), ("rate: 1Gbit", 25_000)],
)
def test_a_cable_has_its_length_or_delay(text: str, length_ps: int) -> None:
    """Length and delay set the same value. Without both a cable is 5 m long."""
    text = f"topology: {{kind: dumbbell, hosts_per_side: 1, links: {{host: {{{text}}}}}}}"
    loaded = spec_from_text(text.encode(), source="a.yml")
    assert loaded.topology.build().cables[0].delay_ps == length_ps


@pytest.mark.parametrize("word", ["off", "false", "%YAML 1.1\n---\n"])
def test_off_disables_a_section(word: str) -> None:
    """`off` is text in YAML 1.2 and false in YAML 1.1."""
    head, value = (word, "off") if word.startswith("%") else ("", word)
    text = f"{head}{SMALL}switches: {{pfc: {value}, ecn: on, roles: {{leaf: {{ecn: {value}}}}}}}"
    loaded = spec_from_text(text.encode(), source="a.yml")
    assert loaded.switch("leaf1").pfc is None
    assert loaded.switch("leaf1").ecn is None
    assert loaded.switch("spine1").ecn is not None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("h1", ("h1",)),
        ("h1-h2", ("h1", "h2")),
        ("h1-2", ("h1", "h2")),
        ("[h2, h1]", ("h2", "h1")),
        ("'h2, h1'", ("h2", "h1")),
    ],
)
def test_hosts_may_be_single_names_ranges_or_lists(text: str, names: tuple[str, ...]) -> None:
    """Each form names the same kind of senders."""
    text = f"traffic: [{{name: a, pattern: incast, from: {text}, to: h4, size: 1KB}}]"
    small = "topology: {kind: dumbbell, hosts_per_side: 2}\n"
    loaded = spec_from_text((small + text).encode(), source="a.yml")
    (entry,) = loaded.traffic
    assert isinstance(entry, Incast)
    assert entry.sources == names


def test_a_setting_changes_one_key() -> None:
    """`--set` reaches mappings, list entries by number or name, and keys that are not there yet."""
    loaded = load_spec(
        INCAST,
        [
            "switches.ecn.kmin=50KB",
            "traffic.0.size=2MB",
            "traffic.victim.count=3",
            "hosts.nodes.h1.nic.mtu=1024",
            "capture=all",
            "slowdown=1000",
            "compare.roce-pfc.seed=9",
        ],
    )
    ecn = loaded.switch("leaf1").ecn
    assert ecn is not None
    assert (ecn.kmin_given, ecn.kmax_given) == (50_000, None)
    incast, victim = loaded.traffic
    assert isinstance(incast, Incast)
    assert isinstance(victim, Pair)
    assert (incast.size_bytes, victim.size_bytes, victim.count) == (2_000_000, 1_000_000, 3)
    assert (loaded.host("h1").nic.mtu, loaded.host("h2").nic.mtu) == (1024, 4096)
    assert loaded.capture == ("all",)
    assert loaded.slowdown == 1000
    assert loaded.variants()["roce-pfc"].seed == 9


@pytest.mark.parametrize(
    ("setting", "finding"),
    [
        ("seed", "--set seed: is not a setting; write it like --set switches.ecn.kmin=50KB"),
        ("=1", "--set : is not a setting; write it like --set switches.ecn.kmin=50KB"),
        ("seed=", "--set seed: has no value"),
        ("sede=1", "--set sede: sede: unknown key (did you mean 'seed'?)"),
        ("x.y.z=1", "--set x.y.z: x: unknown key"),
        ("traffic.victm.size=1", "--set traffic.victm.size: there is no entry 'victm' (did you"),
        ("traffic.9.size=1", "--set traffic.9.size: there is no entry '9'"),
        ("switches.buffer=2XB", "--set switches.buffer: switches.buffer: '2XB' is not understood"),
        ("seed=[", "--set seed: its value is not valid YAML"),
        ("seed={a: 1, a: 2}", "--set seed: its value: is given twice"),
        ("traffic.victim.to.host=h9", "--set traffic.victim.to.host: traffic.1.to: "),
    ],
)
def test_a_wrong_setting_is_reported_at_the_setting(setting: str, finding: str) -> None:
    """The finding names the setting and not a line of the file."""
    with pytest.raises(SpecError) as caught:
        load_spec(INCAST, [setting])
    assert len(caught.value.findings) == 1
    assert caught.value.findings[0].startswith(finding)


def test_a_contradiction_is_reported_at_the_setting() -> None:
    """The file is valid without the setting. Variants that inherit the mistake do not repeat it."""
    with pytest.raises(SpecError) as caught:
        load_spec(INCAST, ["switches.pfc.xoff=96KB", "switches.pfc.xon=100KB"])
    (finding,) = caught.value.findings
    assert finding.startswith("--set switches.pfc.xon: switches.pfc.xon: xon (100KB) is above xoff")


def test_a_spec_cannot_be_changed() -> None:
    """A Spec is frozen, so that its users can share it."""
    loaded: Any = spec("")
    with pytest.raises(ValueError, match="frozen"):
        loaded.seed = 2


def test_the_schema_beside_the_specs_is_current() -> None:
    """Editors read it there. `emu schema > topologies/emu.schema.json` updates the file."""
    from emu.spec.schema import schema_text

    assert (ROOT / "topologies" / "emu.schema.json").read_text() == schema_text()


def test_every_key_is_described_in_the_schema() -> None:
    """Editors show the description of the key under the pointer."""
    from emu.spec.schema import schema

    document = schema()
    for name, model in {"spec": document, **document["$defs"]}.items():
        for key, about in model["properties"].items():
            assert about.get("description", "").endswith("."), f"{name}.{key}"


@pytest.mark.parametrize("word", ["on", "yes", "Yes", "true", "True", "ON"])
def test_any_yes_word_enables_a_section(word: str) -> None:
    """YAML 1.1 reads each of these words as true."""
    spec = spec_from_text(f"{NETWORK}switches: {{ecn: {word}}}\n".encode(), source="x.emu.yml")
    assert spec.switches.ecn is not None


@pytest.mark.parametrize("word", ["off", "no", "No", "false", "FALSE", "OFF"])
def test_any_no_word_disables_a_section(word: str) -> None:
    spec = spec_from_text(f"{NETWORK}switches: {{ecn: {word}}}\n".encode(), source="x.emu.yml")
    assert spec.switches.ecn is None


@pytest.mark.parametrize("rate", ["400G", "400Gbit", "0.4T", "400Gbps", "400 Gb/s", "400000M"])
def test_a_rate_is_read_as_data_sheets_write_it(rate: str) -> None:
    text = NETWORK.replace("}", f", links: {{host: {{rate: {rate}}}}}}}")
    topology = spec_from_text(text.encode(), source="x.emu.yml").topology.build()
    assert {topology.cable[topology.ports[host.name][0]].rate_bps for host in topology.hosts} == {
        400_000_000_000
    }


def test_merge_keys_add_missing_keys() -> None:
    """A mapping's own keys win, then the keys of the first merged mapping that has them."""
    text = NETWORK + (
        "switches:\n"
        "  nodes:\n"
        "    left: &one {buffer: 3MB, latency: 1us, ecn: {kmin: 5KB}}\n"
        "    right: {<<: [*one, {latency: 3us, alpha: 2.0}], buffer: 9MB}\n"
    )
    right = spec_from_text(text.encode(), source="x.emu.yml").switch("right")
    assert (right.buffer_bytes, right.latency_ps, right.alpha) == (9_000_000, 1_000_000, 2.0)
    assert right.ecn is not None
    assert right.ecn.kmin_bytes == 5_000


def test_a_valid_spec_is_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules check the same object that is loaded."""
    made: list[Spec] = []
    validate = Spec.model_validate

    def counted(data: object) -> Spec:
        made.append(validate(data))
        return made[-1]

    monkeypatch.setattr(Spec, "model_validate", counted)
    loaded = spec("")
    assert made == [loaded]
    assert made[0] is loaded
    assert loaded.workload() is loaded.workload()
