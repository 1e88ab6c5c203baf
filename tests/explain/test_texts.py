"""Every key, counter and field that users see has an explanation."""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import pytest

from emu.explain import keys
from emu.explain.fields import fields
from emu.fabric_kind import Framing
from emu.measure.counter_notes import NOTES, PLACES, note_of
from emu.measure.counter_table import NIC
from emu.measure.counters import counter_names
from emu.reference import pages
from emu.report.summary import Summary, summarise
from emu.runtime.record import record
from emu.runtime.virtual import VirtualRunner
from emu.spec import references
from emu.spec.model import load_spec
from emu.spec.notes import SOURCE, UNIT, WHY
from emu.spec.presets import PRESET_NOTES, PRESETS

ROOT = Path(__file__).parents[2]
PUBLIC = {text for name, text in vars(references).items() if name.isupper()}


def test_every_key_has_a_meaning() -> None:
    """Keys that the spec's author names have the meaning of their mapping."""
    without = [key.name for key in keys.all_keys() if not key.meaning]
    assert {name.rsplit(".", 1)[-1] for name in without} <= {keys.NAME}


def test_every_default_has_a_reason() -> None:
    """A key without its own reason has that of its section."""
    without = [k.name for k in keys.all_keys() if "default" in k.node and WHY not in k.node]
    assert without == []


def test_every_number_has_a_unit() -> None:
    """Numbers that a spec gives as text with a unit count as well."""
    assert [key.name for key in keys.all_keys() if _is_number(key) and UNIT not in key.node] == []


def _is_number(key: keys.Key) -> bool:
    kinds = key.node.get("type", ())
    return key.path[-1] != keys.NAME and bool({"integer", "number"} & {*_listed(kinds)})


def _listed(kinds: str | list[str]) -> list[str]:
    return [kinds] if isinstance(kinds, str) else kinds


def test_sources_are_named_in_one_place() -> None:
    """All citations of a paper use the same constant."""
    assert {str(key.node[SOURCE]) for key in keys.all_keys() if SOURCE in key.node} <= PUBLIC


@pytest.mark.parametrize("framing", Framing)
def test_every_port_counter_has_a_note(framing: Framing) -> None:
    """Counters of priorities and lanes that a run leaves out have notes as well."""
    names = counter_names(framing)
    assert [name for name in names if note_of(name, ("port", framing.value)) is None] == []


def test_every_nic_counter_has_a_note() -> None:
    """The names are those of the core's NIC counters."""
    assert [name for name in NIC.cells if note_of(name, ("nic",)) is None] == []


@pytest.mark.parametrize("fabric", ["roce", "ib"])
def test_every_counter_of_a_summary_has_a_note(fabric: str, tmp_path: Path) -> None:
    """The sections are ports, hosts, scale-up ports and totals."""
    spec = load_spec(ROOT / "topologies" / "pair.emu.yml", [f"fabric={fabric}"])
    summary = summarise(record("pair", spec, VirtualRunner(), tmp_path)[0])
    ports = ("port", "ethernet" if fabric == "roce" else "infiniband")
    places = {"ports": ports, "hosts": ("nic", *ports), "scale_up": ("port", "infiniband")}
    sections = [(summary[name], where) for name, where in places.items()]  # type: ignore[literal-required]
    sections += [({"totals": summary["totals"]}, ("total",))]
    for section, where in sections:
        for own in section.values():
            assert [name for name in own if note_of(name, where) is None] == []


def test_no_counter_has_two_notes_in_one_place() -> None:
    """Each place is one of the described places."""
    assert len({(note.name, note.where) for note in NOTES}) == len(NOTES)
    assert {note.where for note in NOTES} == PLACES.keys()


def test_a_number_in_a_name_is_in_its_meaning() -> None:
    """N in a note is replaced by the requested priority or lane."""
    note = note_of("prio3_PFC_WD_QUEUE_STATS_TX_PACKETS_LAST", ("ethernet",))
    assert note is not None
    meaning = note.meaning_of("prio3_PFC_WD_QUEUE_STATS_TX_PACKETS_LAST")
    assert meaning.startswith("The part of prio3_PFC_WD_QUEUE_STATS_TX_PACKETS that")


def test_every_field_of_a_summary_has_a_meaning() -> None:
    """The fields at the top are those of Summary."""
    assert [field.name for field in fields() if not field.meaning] == []
    top = [field.name.removesuffix("[]") for field in fields() if "." not in field.name]
    assert top == list(get_type_hints(Summary))


def test_every_preset_has_a_note() -> None:
    """There are no notes on presets that do not exist."""
    assert PRESET_NOTES.keys() == PRESETS.keys()


def test_the_reference_is_up_to_date() -> None:
    """`make reference` updates the pages."""
    folder = ROOT / "docs" / "reference"
    assert {path.name: path.read_text() for path in folder.iterdir()} == pages()
