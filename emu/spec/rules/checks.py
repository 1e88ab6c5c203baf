"""Rules for captures and checks: their names exist, and every check can fail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from emu.fabric_kind import SCALE_UP
from emu.measure.counter_notes import NOTES, notes_of
from emu.spec.checks.check import Check
from emu.spec.checks.kind import Window
from emu.spec.diagnostic import Diagnostic, did_you_mean, unknown_name
from emu.spec.scenario import Spec
from emu.spec.traffic.random_traffic import Background
from emu.spec.traffic.storage import StorageEntry
from emu.units import write_rate, write_time


def captured_ports_exist(spec: Spec) -> Iterator[Diagnostic]:
    known = list(spec.topology.build().port_named)
    for index, name in enumerate(spec.capture):
        if name != "all" and name not in known:
            hint = did_you_mean(name, known) or f"; ports are called like {known[0]}, or all"
            text = f"there is no port {name!r}{hint}"
            yield Diagnostic(("capture", index), text, about=(("topology",),))


def checked_names_exist(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    ports = list(topology.port_named)
    places = [*ports, *topology.host, *topology.switch, "all", "total"]
    has_flows = any(getattr(check.what, "flow", None) for check in spec.verify)
    known = {
        "flow": ("flow called", list(spec.flow_ends) if has_flows else []),
        "traffic": ("traffic called", [entry.name for entry in spec.traffic]),
        "port": ("port", ports),
        "at": ("port or host", places),
        "like_at": ("port or host", places),
    }
    for index, check in enumerate(spec.verify):
        for key, name in _named(check, known):
            what, names = known[key]
            if name not in names:
                text = unknown_name(what, name, names)
                about = ("topology",) if key in ("port", "at", "like_at") else ("traffic",)
                yield Diagnostic(("verify", index, check.kind, key), text, about=(about,))


_COUNTERS = {"counter": ("name",), "agreement": ("name", "like")}
"""Kind of check -> its keys that name a counter."""


def checked_counters_exist(spec: Spec) -> Iterator[Diagnostic]:
    """Without this rule a check of an unknown counter would fail at the end of a long run."""
    of_ports = spec.fabric_kind.framing.value
    inside = {SCALE_UP.framing.value} if spec.scale_up else set()
    places = {of_ports, "port", "nic", *inside}
    for index, check in enumerate(spec.verify):
        for key in _COUNTERS.get(check.kind, ()):
            at = getattr(check.what, "like_at" if key == "like" else "at")
            where = {"total"} if at == ("total",) else places | ({"total"} & set(at))
            name = getattr(check.what, key)
            if not any(note.where in where for note in notes_of(name)):
                known = [note.name for note in NOTES if note.where in where]
                hint = did_you_mean(re.sub("[0-9]+", "N", name), known)
                text = f"nothing of this fabric counts {name!r}{hint or _ALL_COUNTERS}"
                about = (("fabric",), ("verify", index, check.kind, "at"))
                yield Diagnostic(("verify", index, check.kind, key), text, about)


_ALL_COUNTERS = "; docs/reference/counters.md has all counters"


def _named(check: Check, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each name under these keys of a check, with its key."""
    for key in keys:
        value = getattr(check.what, key, None)
        names = (value,) if isinstance(value, str) else value or ()
        yield from ((key, name) for name in names)


def checked_goodput_can_be_reached(spec: Spec) -> Iterator[Diagnostic]:
    for index, check in enumerate(spec.verify):
        if check.goodput is None or check.goodput.at_least is None:
            continue
        rate_bps = _slowest_link(spec, spec.flow_ends.get(check.goodput.flow, ()))
        if rate_bps is not None and check.goodput.at_least > rate_bps:
            yield Diagnostic(
                ("verify", index, "goodput", "at_least"),
                f"the flow's link carries {write_rate(rate_bps)} at most; lower at_least",
                about=(("traffic",), ("topology",)),
            )


def _slowest_link(spec: Spec, hosts: Iterable[str]) -> int | None:
    topology = spec.topology.build()
    ports = [topology.ports[host][0] for host in hosts if host in topology.host]
    return min((topology.cable[port].rate_bps for port in ports), default=None)


def checked_priorities_carry_traffic(spec: Spec) -> Iterator[Diagnostic]:
    """Does not apply to InfiniBand, where every lane is lossless."""
    if spec.fabric_kind.uses_credits:
        return
    known = spec.topology.build().host
    carried = {
        spec.priority(source, entry.priority)
        for entry in spec.traffic
        for source in entry.senders
        if source in known
    }
    for index, check in enumerate(spec.verify):
        if check.lossless is not None and check.lossless.priority not in carried:
            priorities = " and ".join(map(str, sorted(carried))) or "none"
            yield Diagnostic(
                ("verify", index, "lossless", "priority"),
                f"no flow runs on priority {check.lossless.priority}, so the check could not "
                f"fail; flows run on {priorities}",
                about=(("traffic",), ("hosts",)),
            )


def checked_times_are_in_the_run(spec: Spec) -> Iterator[Diagnostic]:
    for index, check in enumerate(spec.verify):
        if check.finish is not None and check.finish.by_ps > spec.time_limit_ps:
            yield Diagnostic(
                ("verify", index, "finish", "by"),
                f"the run is over by then (time_limit is {write_time(spec.time_limit_ps)}); "
                "check earlier, or raise time_limit",
                about=(("time_limit",),),
            )


def checked_windows_are_in_the_run(spec: Spec) -> Iterator[Diagnostic]:
    for index, check in enumerate(spec.verify):
        window = check.what
        if not isinstance(window, Window):
            continue
        path = ("verify", index, check.kind)
        if window.after_ps >= spec.time_limit_ps:
            yield Diagnostic(
                (*path, "after"),
                f"the run is over by then (time_limit is {write_time(spec.time_limit_ps)}); "
                "lower after, or raise time_limit",
                about=(("time_limit",),),
            )
        elif window.until_ps is not None and window.until_ps <= window.after_ps:
            yield Diagnostic(
                (*path, "until"),
                f"is not after {write_time(window.after_ps)}, where the window begins; "
                "raise it, or lower after",
            )


def checked_ports_are_captured(spec: Spec) -> Iterator[Diagnostic]:
    captured = {*spec.topology.build().port_named} if "all" in spec.capture else {*spec.capture}
    known = captured | {"all"} if captured else captured
    for index, check in enumerate(spec.verify):
        for port, wanted in _looked_at(check):
            if port not in known:
                what = "nothing is" if port == "all" else f"{port} is not"
                yield Diagnostic(
                    ("verify", index, check.kind),
                    f"{what} captured, so the check has no {wanted}; add it to capture",
                    about=(("capture",),),
                )


def _looked_at(check: Check) -> Iterator[tuple[str, str]]:
    """The ports whose captures a check needs, and the content that it needs."""
    if check.checksums:
        yield from ((port, "checksums") for port in check.checksums.at)
    if check.marks:
        yield check.marks.at, "marks"


def checked_ios_are_done(spec: Spec) -> Iterator[Diagnostic]:
    entries = {entry.name: entry for entry in spec.traffic}
    for index, check in enumerate(spec.verify):
        way = getattr(check.what, "way", None)
        entry = entries.get(getattr(check.what, "traffic", ""))
        if way is None or entry is None:
            continue
        path, about = ("verify", index, check.kind), (("traffic",),)
        if not isinstance(entry, StorageEntry):
            text = f"{entry.name} is not a storage entry and has no {way}s; name a storage entry"
            yield Diagnostic((*path, "traffic"), text, about)
        elif not (entry.ios.reads if way == "read" else entry.ios.writes):
            share = f"{100 * entry.reads:g} % of its {entry.count} I/Os read"
            text = f"{entry.name} has no {way}s, as {share}; change its reads, or check the others"
            yield Diagnostic((*path, "way"), text, about)


def checked_loads_have_slowdowns(spec: Spec) -> Iterator[Diagnostic]:
    loads = [entry.name for entry in spec.traffic if isinstance(entry, Background)]
    others = {entry.name for entry in spec.traffic} - {*loads}
    for index, check in enumerate(spec.verify):
        if check.fct_slowdown is not None and check.fct_slowdown.traffic in others:
            name = check.fct_slowdown.traffic
            remedy = f"; name {' or '.join(loads)}" if loads else "; check its latency"
            text = f"{name} is not a background load, and only those have slowdowns{remedy}"
            path = ("verify", index, "fct_slowdown", "traffic")
            yield Diagnostic(path, text, about=(("traffic",),))


RULES = (
    captured_ports_exist,
    checked_names_exist,
    checked_counters_exist,
    checked_goodput_can_be_reached,
    checked_priorities_carry_traffic,
    checked_times_are_in_the_run,
    checked_windows_are_in_the_run,
    checked_ports_are_captured,
    checked_ios_are_done,
    checked_loads_have_slowdowns,
)
