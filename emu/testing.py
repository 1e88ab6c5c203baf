"""Fabrics in your own tests: run a spec, inspect the results, check expectations.

    fabric = Fabric(Path("topologies/incast.emu.yml"), clock="virtual", out=Path("out"))
    run = fabric.run(traffic=[incast(to="h1", size="256KB")])
    assert run.flows.completed == 7
    assert run.delta("leaf1:h2", "tx_prio3_pause") > 0
    expect(run).lossless(priority=3)

Random counts are compared with their distribution, measured values with a tolerance:

    assert binomial(marked, sent, 0.2)
    assert run.flow["victim"].goodput_bps == within(50e9, rel=0.05)

`emu.pytest_plugin` provides fixtures. A test does not depend on the clock: the same test runs on
the virtual clock, in this process, and on the exact and the real clock, in a lab.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from emu.approx import Binomial, Within, binomial, within
from emu.clocks import AUTO, VIRTUAL
from emu.errors import CheckFailed, UsageError
from emu.measure.counters import counter_names
from emu.measure.event_log import happened
from emu.measure.recording import Recording
from emu.measure.records import FlowRecord
from emu.measure.snapshot_diff import Event
from emu.report.run_view import RunFacts
from emu.report.text import print_run
from emu.report.verdict import check_results
from emu.report.write import write_run
from emu.runtime import runner_on
from emu.runtime.auto_clock import auto_clock
from emu.runtime.record import record
from emu.runtime.runner import ignore
from emu.spec import settings
from emu.spec.groups import expanded
from emu.spec.merge import overlay
from emu.spec.model import Check, Spec, SwitchSpec, load_spec, spec_from_mapping
from emu.units import PS_PER_NS, parse_time

if TYPE_CHECKING:
    from emu.runtime.virtual import VirtualFabric

T = TypeVar("T")
Entry = dict[str, Any]
"""An entry of a spec's `traffic:`."""

_OTHERS = "all others"
"""The senders of an incast that names none."""
_OF_SWITCHES = {field.alias or name for name, field in SwitchSpec.model_fields.items()} - set(
    Spec.model_fields
)
"""Keys that apply to all switches when they are given without `switches`."""


class Fabric:
    """A spec that can be run any number of times. Each run is a new fabric."""

    def __init__(
        self,
        path: Path,
        *,
        clock: str,
        out: Path,
        changes: Mapping[str, Any] | None = None,
        on_run: Callable[[Run], None] = lambda run: None,
    ) -> None:
        """`clock`: a name, or `auto` for the choice of `emu run`, made once for the spec.
        `changes`: keys of the spec, as in a variant. `on_run` is called with every run.

        Raises SpecError with all mistakes of the spec, UsageError for an unknown clock.
        """
        self._source = f"changes to {path.name}"
        self._folder = path.parent
        self.spec = self._with(load_spec(path), changes or {})
        self.clock = auto_clock([self.spec]).clock.name if clock == AUTO else clock
        self._runner = runner_on(self.clock)
        self._out = out
        self._on_run = on_run
        self._runs = 0

    def run(self, **changes: Any) -> Run:
        """Runs the spec with these keys changed: `traffic=[...]`, `seed=3`.

        A single entry needs no list, and keys of all switches need no `switches` (`ecn=...`).
        `duration` is another name of `time_limit`. A dotted key changes one key, as `--set` does:
        `**{"switches.ecn.kmin": "50KB"}`. If the traffic changes, the spec's own checks are left
        out, because they refer to its own traffic.
        """
        spec = self._with(self.spec, changes)
        self._runs += 1
        out = self._out / f"run{self._runs}"
        run = Run(RunFacts(spec.name, *record(spec.name, spec, self._runner, out)), out)
        self._on_run(run)
        return run

    @contextmanager
    def stepped(self) -> Iterator[VirtualFabric]:
        """The fabric on the virtual clock, with traffic. Only the test advances its time.

        Raises UsageError for what only the real clock can do.
        """
        from emu.bgp.recorder import with_learned_routes
        from emu.runtime.virtual import VirtualFabric
        from emu.subnet.sm_sweeps import swept

        runner_on(VIRTUAL.name).refuse(self.spec)
        spec = with_learned_routes(self.spec)
        topology = spec.topology.build()
        with VirtualFabric(spec, topology, swept(spec, topology)) as fabric:
            fabric.start()
            yield fabric

    def _with(self, spec: Spec, changes: Mapping[str, Any]) -> Spec:
        return _changed(spec, changes, self._source, self._folder)


class Flows(tuple[FlowRecord, ...]):
    """The flows of a run: `run.flows.completed == len(run.flows)`."""

    @property
    def completed(self) -> int:
        """The number of flows whose bytes all arrived unchanged."""
        return sum(flow.completed for flow in self)


class Run:
    """The results of a run."""

    def __init__(self, facts: RunFacts, out: Path) -> None:
        self.facts = facts
        self.out = out
        """The folder of the captures, and of all other files after `write`."""

    @property
    def recording(self) -> Recording:
        return self.facts.recording

    @property
    def conclusive(self) -> bool:
        """Whether the machine kept up. Always true on the virtual clock."""
        return self.facts.conclusive

    @cached_property
    def flows(self) -> Flows:
        return Flows(self.recording.flows)

    @property
    def offered(self) -> int:
        """The flows of the spec's traffic."""
        return len(self.flows)

    @property
    def completed(self) -> int:
        """The flows whose bytes all arrived unchanged."""
        return self.flows.completed

    @cached_property
    def flow(self) -> dict[str, FlowRecord]:
        return {flow.name: flow for flow in self.flows}

    @cached_property
    def events(self) -> list[Event]:
        """The events in order of time: flows, faults, ports held back by flow control."""
        return happened(self.recording)

    def counter(self, where: str, name: str) -> int:
        """A counter of a switch port (`leaf1:h1`), a host (`h1`) or the whole fabric (`total`).

        The counter of an unused priority or lane is 0. Raises KeyError, with similar names, for a
        place or counter that does not exist.
        """
        recording = self.recording
        places = {**recording.ports, **recording.hosts, "total": recording.totals}
        if where not in places:
            raise KeyError(_no_such("there is no place", where, places))
        used = places[where]
        framing = recording.fabric_kind.framing
        known = used.keys() | (() if where == "total" else counter_names(framing))
        if name not in known:
            raise KeyError(_no_such(f"{where} has no counter", name, known))
        return used.get(name, 0)

    def delta(self, where: str, name: str) -> int:
        """The increase of a counter in the run: its whole value, since a run is a new fabric."""
        return self.counter(where, name)

    def write(self) -> dict[str, Path]:
        """Writes summary, samples, page and plots. Returns a description of each file."""
        return write_run(self.facts, self.out)

    def bring_up(self, name: str) -> None:
        """Starts a lab of the fabric in the background, without traffic, until `emu down NAME`.

        Raises HostError, FabricError, and UsageError when a lab has that name.
        """
        from emu.daemon.up import bring_up
        from emu.runtime.real import slowdown_for

        spec = self.facts.spec.model_copy(update={"name": name})
        slowdown, _ = slowdown_for(spec)
        bring_up(spec, slowdown, ignore)

    def __str__(self) -> str:
        """The report as `emu run` prints it, verdict first."""
        text = io.StringIO()
        print_run(self.facts, {}, text)
        return text.getvalue()


class Expectation:
    """Checks, by the names of a spec's `verify:`.

    expect(run).goodput(flow="victim", at_least="60Gbit")

    Each check raises CheckFailed with the measured value, or returns self for the next check.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def __getattr__(self, kind: str) -> Callable[..., Expectation]:
        def check(*nameless: object, **keys: Any) -> Expectation:
            __tracebackhide__ = True
            if nameless:
                raise UsageError(
                    f"expect(run).{kind}({nameless[0]!r}): which key of it is that? write them as "
                    "in expect(run).goodput(flow='victim', at_least='60Gbit')"
                )
            self._check({kind: keys})
            return self

        return check

    def completed(self) -> Expectation:
        """Checks that every flow completed."""
        __tracebackhide__ = True
        self._check({"completed": "all"})
        return self

    def _check(self, wanted: Mapping[str, Any]) -> None:
        __tracebackhide__ = True
        source = f"expect(run).{next(iter(wanted))}"
        spec = _changed(self._run.facts.spec, {"verify": [wanted]}, source)
        (result,) = check_results(spec.verify, self._run.recording)
        if not result.passed:
            raise CheckFailed(f"expected: {result.check}; measured: {result.detail}")


def expect(run: Run) -> Expectation:
    return Expectation(run)


def incast(
    to: str, *, size: str, hosts: str = _OTHERS, op: str = "write", name: str = "incast"
) -> Entry:
    """An incast: each of `hosts` (`h2-h8`; default: all others) sends `size` to one host."""
    return {"name": name, "pattern": "incast", "from": hosts, "to": to, "op": op, "size": size}


def pair(source: str, to: str, *, size: str, op: str = "write", name: str = "pair") -> Entry:
    """A flow from one host to another."""
    return {"name": name, "pattern": "pair", "from": source, "to": to, "op": op, "size": size}


def _no_such(what: str, name: str, known: Iterable[str]) -> str:
    """A message with similar names, or with all names if none is similar."""
    names = sorted(known)
    near = get_close_matches(name, names)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(names)}"
    return f"{what} {name}; {hint}"


def _changed(spec: Spec, changes: Mapping[str, Any], source: str, folder: Path = Path()) -> Spec:
    """The spec with changed keys. The checks are left out if the traffic changes, as they refer to
    the spec's own traffic. The variants of `compare:` are left out as well."""
    if not changes:
        return spec
    kept = spec.to_mapping()
    kept.pop("compare", None)
    if "traffic" in changes:
        kept.pop("verify", None)
    dotted = {key: value for key, value in changes.items() if "." in key}
    whole = _in_full({key: value for key, value in changes.items() if key not in dotted})
    merged = json.loads(json.dumps(overlay(kept, whole), default=_written))
    for key, value in dotted.items():
        first = key.partition(".")[0]
        key = f"switches.{key}" if first in _OF_SWITCHES else key
        settings.put(merged, key, json.loads(json.dumps(value, default=_written)))
    for entry in merged.get("traffic", ()):
        if isinstance(entry, dict) and entry.get("from") == _OTHERS:
            entry["from"] = _all_but(str(entry.get("to")), merged["topology"])
    return spec_from_mapping(merged, source=source, folder=folder)


def eventually(
    condition: Callable[[], T], *, within: str, clock: VirtualFabric, every: str = "100ns"
) -> T:
    """Advances the clock until the condition is true, and returns its value.

    The condition is evaluated at an interval of emulated time. Raises AssertionError, with the last
    value, when the time is over.
    """
    __tracebackhide__ = True
    until_ns = clock.now_ns + parse_time(within) // PS_PER_NS
    while not (seen := condition()):
        if clock.now_ns >= until_ns:
            raise AssertionError(f"not within {within} of emulated time; at last it was {seen!r}")
        clock.run_until(min(until_ns, clock.now_ns + max(1, parse_time(every) // PS_PER_NS)))
    return seen


def _all_but(receiver: str, topology: Any) -> Any:
    """The other hosts, by name; all where there is no such topology, which is found there."""
    try:
        built = Spec.model_validate({"name": "hosts", "topology": topology}).topology.build()
    except ValueError:
        return "all"
    return [host for host in built.host if host not in expanded((receiver,), built)]


def _in_full(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes in the form of a spec, from their shorter forms."""
    own = {key: value for key, value in changes.items() if key in _OF_SWITCHES}
    rest = {key: value for key, value in changes.items() if key not in own}
    whole = overlay({"switches": own}, rest) if own else rest
    if "duration" in whole:
        whole["time_limit"] = whole.pop("duration")
    for key in ("traffic", "faults", "verify"):
        if isinstance(whole.get(key), Mapping):
            whole[key] = [whole[key]]
    return whole


def _written(value: object) -> str:
    """The form that a spec uses for a value that is no text, number, list or mapping."""
    if isinstance(value, Path):
        return str(value)
    raise UsageError(f"{value!r} is no value of a spec: write a number, text, a list or a mapping")


__all__ = [
    "Binomial",
    "Check",
    "Expectation",
    "Fabric",
    "Flows",
    "Run",
    "Within",
    "binomial",
    "eventually",
    "expect",
    "incast",
    "pair",
    "within",
]
