"""Finds a topic by its name: a key, preset, counter, diagnosis, or field of summary.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from emu.errors import UsageError
from emu.explain import keys
from emu.explain.fields import Field, fields
from emu.explain.keys import Key
from emu.explain.topic import Topic, first_sentence
from emu.measure.counter_notes import NOTES, PLACES, CounterNote, notes_of
from emu.report.diagnosis import PATHOLOGIES, Pathology
from emu.spec.checks.check import KINDS as CHECKS
from emu.spec.diagnostic import did_you_mean, nearest
from emu.spec.fault import KINDS as FAULTS
from emu.spec.notes import facts, written
from emu.spec.presets import PRESET_NOTES, PRESETS
from emu.words import shortened

_MOST_ALIKE = 12
"""The most keys of one path with different meanings that are all shown; of more, only the names."""


def look_up(words: Sequence[str]) -> list[Topic]:
    """The topics that the words name, usually one. Raises UsageError for an unknown name.

    The first word may be the kind of the topic: `counter rx_prio3_pause`.
    """
    kind, *rest = words
    if kind in KINDS:
        found = KINDS[kind](" ".join(rest)) if rest else [_all_of(kind)]
        name, known = " ".join(rest), [name for name, _ in _all_of(kind).below]
    else:
        name, known = " ".join(words), _everything()
        found = _keys(name) or [topic for find in _BY_NAME for topic in find(name)]
    if not found:
        raise UsageError(_nothing(kind if kind in KINDS else "", name, known))
    return found


def overview() -> list[Topic]:
    """The sections of a spec and the kinds of topics."""
    kinds = tuple((kind, f"e.g. emu explain {kind} {_all_of(kind).below[-1][0]}") for kind in KINDS)
    return [_of_key(keys.root(), "a spec"), Topic("overview", "kinds", (_KINDS_FACT,), kinds)]


_KINDS_FACT = "What else can be explained. A kind without a name lists what there is."


def _nothing(kind: str, name: str, known: Iterable[str]) -> str:
    near = _near_key(name) if not kind else ""
    return (
        f"there is no {kind or 'key, counter, preset or diagnosis'} {name!r}"
        f"{near or _almost(name, known)}; `emu explain{f' {kind}' if kind else ''}` lists "
        "what there is"
    )


def _almost(name: str, known: Iterable[str]) -> str:
    """A hint at the intended name: one with other capitals, the end of a path, or a similar one."""
    names = list(known)
    sought = name.casefold()
    meant = [one for one in names if one.casefold() == sought] or [
        one for one in names if one.casefold().endswith(f".{sought}")
    ]
    return f" (did you mean {meant[0]!r}?)" if meant else did_you_mean(name, names)


def _near_key(name: str) -> str:
    """A hint for a path with one wrong step: the path with the step that was probably meant."""
    words = tuple(name.split("."))
    for end in range(len(words) - 1, 0, -1):
        right, wrong, rest = words[:end], words[end], words[end + 1 :]
        if keys.matching(right):
            near = nearest(wrong, keys.known_steps(right))
            paths = [(*right, near, *rest), (*right, near)] if near else []
            meant = next(filter(keys.matching, paths), None)
            return f" (did you mean {'.'.join(meant)!r}?)" if meant else ""
    return ""


# --- keys ---


def _keys(name: str) -> list[Topic]:
    """The keys of a path. A path of several patterns has one topic for each meaning."""
    return _alike(keys.matching(tuple(name.split("."))))


def _keys_called(name: str) -> list[Topic]:
    found = keys.called(name)
    if len({_facts(key) for key in found}) == 1:
        return _alike(found)
    below = tuple((key.name, first_sentence(key.meaning)) for key in found)
    about = f"Keys called {name}. Ask for one of them."
    return [Topic("key", name, (about,), below)] if found else []


def _alike(found: Sequence[Key]) -> list[Topic]:
    by_meaning: dict[tuple[str, ...], list[Key]] = {}
    for key in found:
        by_meaning.setdefault(_facts(key), []).append(key)
    return [_of_key(same[0], _names(same)) for same in by_meaning.values()]


def _names(same: Sequence[Key]) -> str:
    return shortened([key.name for key in same], _MOST_ALIKE)


def _of_key(key: Key, name: str) -> Topic:
    below = ((_label(child), first_sentence(child.meaning)) for child in key.children)
    return Topic("key", name, _facts(key), tuple(below))


def _label(key: Key) -> str:
    return f"{key.path[-2]}.{key.path[-1]}" if key.path[-1] == keys.NAME else key.path[-1]


def _facts(key: Key) -> tuple[str, ...]:
    if not key.path:
        return ("A spec file: what to emulate.",)
    lines = list(facts({**key.node, "description": key.meaning}))
    own = resolved_meaning(key)
    return (lines[0], *([own] if own else []), *lines[1:])


def resolved_meaning(key: Key) -> str:
    """The description of the mapping itself, if it differs from that of the key."""
    own = str(keys.resolved(key.node).get("description", ""))
    return " ".join(own.split()) if own and own != key.meaning else ""


def _checks(name: str) -> list[Topic]:
    return _keys(f"verify.{name}")


def _faults(name: str) -> list[Topic]:
    return _keys(f"faults.{name}")


# --- presets ---


def _presets(name: str) -> list[Topic]:
    if name not in PRESETS:
        return []
    meaning, source = PRESET_NOTES[name]
    about = (meaning, f"Write: switches: {{preset: {name}}}.", f"Source: {source}.")
    return [Topic("preset", f"preset {name}", about, tuple(settings_of(name)))]


def settings_of(preset: str) -> Iterator[tuple[str, str]]:
    """Each key that a preset sets, by its path below `switches`, and the value."""
    given = PRESETS[preset].model_dump(mode="json", by_alias=True, exclude_unset=True)
    yield from _leaves("", given)


def _leaves(prefix: str, value: object) -> Iterator[tuple[str, str]]:
    for key, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, dict) and not all(str(step).isdigit() for step in inner):
            yield from _leaves(f"{prefix}{key}.", inner)
        else:
            yield f"{prefix}{key}", written(inner)


# --- counters, diagnoses, fields ---


def _counters(name: str) -> list[Topic]:
    return [of_counter(note, name) for note in notes_of(name.removeprefix("totals."))]


def of_counter(note: CounterNote, name: str) -> Topic:
    about = (
        note.meaning_of(name),
        f"Unit: {note.unit}.",
        f"Counted by: {PLACES[note.where]}.",
        f"Source of the name: {note.source}.",
    )
    return Topic("counter", name, about)


def _diagnoses(name: str) -> list[Topic]:
    plain = name.replace("-", " ").lower()
    found = [one for one in PATHOLOGIES if one.name.replace("-", " ").lower() == plain]
    return [of_diagnosis(one) for one in found]


def of_diagnosis(one: Pathology) -> Topic:
    return Topic("diagnosis", one.name, (f"How it looks: {one.looks}.", f"Cure: {one.cure}."))


def _fields(name: str) -> list[Topic]:
    plain = name.replace("[]", "")
    found = [field for field in fields() if field.name.replace("[]", "") == plain]
    return [of_field(field) for field in found]


def of_field(field: Field) -> Topic:
    inside = (other for other in fields() if other.name.startswith(f"{field.name}."))
    below = tuple((other.name, first_sentence(other.meaning)) for other in inside)
    return Topic(
        "field", f"summary.json: {field.name}", (field.meaning, f"Type: {field.type}."), below
    )


# --- all of a kind ---


@cache
def _all_of(kind: str) -> Topic:
    """A list of all topics of a kind."""
    lists: dict[str, tuple[str, Iterable[tuple[str, str]]]] = {
        "preset": (
            "Presets of switches.",
            ((name, first_sentence(text)) for name, (text, _) in PRESET_NOTES.items()),
        ),
        "counter": (
            "Counters of ports, NICs and the whole fabric. N is a priority or a virtual lane.",
            ((note.name, first_sentence(note.meaning)) for note in NOTES),
        ),
        "check": ("Checks of a spec's `verify:`.", _children("verify", CHECKS)),
        "fault": ("Faults of a spec's `faults:`.", _children("faults", FAULTS)),
        "diagnosis": (
            "The problems of a run that a report may name.",
            ((one.name, first_sentence(one.looks)) for one in PATHOLOGIES),
        ),
        "field": (
            "Fields of summary.json.",
            ((field.name, first_sentence(field.meaning)) for field in fields()),
        ),
    }
    about, below = lists[kind]
    return Topic("overview", kind, (about,), tuple(below))


def _children(section: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The keys of this name among those of a kind."""
    for name in names:
        (key,) = keys.matching((section, name))
        yield name, first_sentence(key.meaning)


def _everything() -> list[str]:
    known = [name for kind in KINDS for name, _ in _all_of(kind).below]
    paths = [key.name for key in keys.all_keys()]
    return list(dict.fromkeys([*paths, *(path.rsplit(".", 1)[-1] for path in paths), *known]))


KINDS: dict[str, Callable[[str], list[Topic]]] = {
    "preset": _presets,
    "counter": _counters,
    "check": _checks,
    "fault": _faults,
    "diagnosis": _diagnoses,
    "field": _fields,
}
"""Kind of topic -> the function that finds a topic of this kind."""

_BY_NAME = (_counters, _presets, _diagnoses, _fields, _keys_called)
"""The functions that search a name without a kind, if it is not the path of a key."""
