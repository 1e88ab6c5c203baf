"""Rules for faults of every kind; each kind adds its own (`FaultKind.contradictions`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from emu.spec.diagnostic import Diagnostic, did_you_mean, unknown_name
from emu.spec.fault import Fault, fault_names, share_a_setting
from emu.spec.scenario import Spec
from emu.units import write_time


def fault_names_are_unique(spec: Spec) -> Iterator[Diagnostic]:
    first: dict[str, int] = {}
    for index, name in enumerate(fault_names(spec.faults)):
        if first.setdefault(name, index) != index:
            yield Diagnostic(
                ("faults", index),
                f"another fault has the name {name!r} too; rename one, so that their results "
                "can be distinguished",
                about=(("faults", first[name]),),
            )


def fault_places_exist(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    for index, fault in enumerate(spec.faults):
        key, what, known = fault.what.named(topology)
        place = fault.what.place
        if place in known:
            continue
        if what == "cable":
            hint = did_you_mean(place, known) or f"; cables are called like {known[0]}"
            text = f"there is no cable {place!r}{hint}"
        else:
            text = unknown_name(what, place, known)
        yield Diagnostic(("faults", index, fault.kind, key), text, about=(("topology",),))


def faults_begin_in_the_run(spec: Spec) -> Iterator[Diagnostic]:
    for index, fault in enumerate(spec.faults):
        if fault.at_ps >= spec.time_limit_ps:
            yield Diagnostic(
                ("faults", index, "at"),
                f"the run is over by then (time_limit is {write_time(spec.time_limit_ps)}); "
                "begin earlier, or raise time_limit",
                about=(("time_limit",),),
            )


def faults_are_available_in_the_fabric(spec: Spec) -> Iterator[Diagnostic]:
    for index, fault in enumerate(spec.faults):
        reason = fault.what.why_unavailable(spec.fabric_kind)
        if reason is not None:
            yield Diagnostic(
                ("faults", index, fault.kind),
                reason,
                about=(("fabric",),),
                idle_if_inherited=True,
            )


def faults_suit_the_spec(spec: Spec) -> Iterator[Diagnostic]:
    """Applies the rules of each fault's kind."""
    for index, fault in enumerate(spec.faults):
        if fault.what.why_unavailable(spec.fabric_kind) is None:
            yield from fault.what.contradictions(fault, ("faults", index), spec)


def a_setting_is_changed_once_at_a_time(spec: Spec) -> Iterator[Diagnostic]:
    for (_, a), (index, b) in combinations(enumerate(spec.faults), 2):
        if share_a_setting(a.kind, a.what.place, b.kind, b.what.place) and _overlap(a, b):
            yield Diagnostic(
                ("faults", index),
                f"{b.what.place} {b.what.already} at that time; let one end before the other "
                "begins",
                about=(("faults",),),
            )


def _overlap(a: Fault, b: Fault) -> bool:
    first, second = sorted((a, b), key=lambda fault: fault.at_ps)
    return first.end_ps is None or first.end_ps > second.at_ps


RULES = (
    fault_names_are_unique,
    fault_places_exist,
    faults_begin_in_the_run,
    faults_are_available_in_the_fabric,
    faults_suit_the_spec,
    a_setting_is_changed_once_at_a_time,
)
