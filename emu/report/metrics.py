"""The metrics of a host or switch for Prometheus, from a lab's counters.

    rx_prio3_pause of port leaf1:h1    emu_port_rx_prio_pause_total{node="leaf1", port="leaf1:h1",
                                                                   priority="3"}
    np_cnp_sent of host h1             emu_nic_np_cnp_sent_total{node="h1"}

The names are those of `emu counters`: the number of a priority or virtual lane is a label, units
are seconds and bytes, and the end says what it is. Times are emulated; `emu_time_seconds_total` is
the emulated time itself, so a rate in the fabric's own time is one increase divided by the other.
SAI's names are left out, as they are others for the same counters, and so are counts of the latest
storm alone.

Source of the rules for names: Prometheus' documentation, "Metric and label naming".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from emu._core import lib
from emu.fabric_kind import Framing
from emu.measure.counter_table import CLASSES, NIC, NUMBERED, PORT, Counter, with_number
from emu.measure.counters import PORT_COUNTERS
from emu.measure.raw_counters import RawCounters
from emu.measure.records import Counters
from topologies.graph import Topology

_UNITS = {
    "bytes": ("bytes", 1.0),
    "words of 4 bytes": ("bytes", 4.0),
    "us of emulated time": ("seconds", 1e-6),
    "ticks of 1 ns of emulated time": ("seconds", 1e-9),
}
"""A counter's unit -> Prometheus' unit, and how much of it one is."""
_CLASS_LABELS = {Framing.ETHERNET: "priority", Framing.INFINIBAND: "vl"}
_LEVELS = {
    "queued_bytes": "What the egress queues of the port hold now.",
    "held_bytes": "What the ingress buffer of the port holds now.",
}
"""Levels in the core that have no public name."""


@dataclass(frozen=True)
class Metric:
    """A family of metrics: what Prometheus knows of it."""

    name: str
    """As Prometheus shows it, with `_total` at the end of a counter's."""
    help: str
    is_counter: bool
    labels: tuple[str, ...]
    per_unit: float = 1.0
    """How much of the metric's unit is one of the counter's."""


@dataclass
class Family:
    """A family of metrics with its samples: the values of its labels, and the number."""

    metric: Metric
    samples: list[tuple[tuple[str, ...], float]] = field(default_factory=list)


@dataclass(frozen=True)
class Seen:
    """What a host or switch has counted up to a moment."""

    time_ps: int
    ports: Mapping[str, RawCounters]
    """Port -> its counters in the core."""
    nic: Counters
    """A host's; empty before its first workload."""
    down: frozenset[str]
    """Ports without a link."""


FamiliesOf = Callable[[str], Iterable[Family]]
"""Gives the metrics of a node at this moment. Raises FabricError."""

TIME = Metric("emu_time_seconds_total", "Emulated time since the lab came up.", True, ("node",))
UP = Metric("emu_port_up", "1: the port has a link. 0: it has none.", False, ("node", "port"))
SPEED = Metric(
    "emu_port_speed_bytes",
    "The most that the port can send in a second of emulated time.",
    False,
    ("node", "port"),
    1 / 8,
)


def metric_of(row: Counter, name: str, kind: str, labels: tuple[str, ...]) -> Metric:
    """The metric of a counter. `name`: its public name, with N for a number."""
    unit, per_unit = _UNITS.get(row.unit, ("", 1.0))
    words = ["emu", kind, NUMBERED.sub("", name)]
    if unit and not name.endswith(unit):
        words.append(unit)
    is_counter = not row.level
    if is_counter:
        words.append("total")
    return Metric("_".join(words), row.meaning, is_counter, labels, per_unit)


@cache
def port_metrics(framing: Framing) -> dict[str, Metric]:
    """Public name, with N -> the metric, of ports."""
    found = {}
    for name, row in PORT.described[framing].items():
        if _is_own(row, name):
            own = (_CLASS_LABELS[framing],) if NUMBERED.search(name) else ()
            found[name] = metric_of(row, name, "port", ("node", "port", *own))
    return found


@cache
def nic_metrics() -> dict[str, Metric]:
    """Name -> the metric, of NICs."""
    return {row.name: metric_of(row, row.name, "nic", ("node",)) for row in NIC.rows}


@cache
def level_metrics() -> dict[str, Metric]:
    """Counter of the core -> the metric, of what ports hold."""
    labels = ("node", "port")
    return {name: Metric(f"emu_port_{name}", text, False, labels) for name, text in _LEVELS.items()}


def all_metrics(framing: Framing) -> Iterator[Metric]:
    """Every metric that nodes of a fabric can have."""
    yield from (TIME, UP, SPEED)
    yield from port_metrics(framing).values()
    yield from level_metrics().values()
    yield from nic_metrics().values()


def _is_own(row: Counter, name: str) -> bool:
    return row.source != lib.SAI_PORT and not name.endswith("_LAST")


def families(node: str, seen: Seen, topology: Topology, framing: Framing) -> Iterable[Family]:
    """The metrics of one host or switch."""
    found: dict[str, Family] = {}

    def add(metric: Metric, labels: tuple[str, ...], value: float) -> None:
        family = found.setdefault(metric.name, Family(metric))
        family.samples.append(((node, *labels), value * metric.per_unit))

    add(TIME, (), seen.time_ps * 1e-12)
    ports = {topology.port_name[port]: port for port in topology.ports[node]}
    for name, port in ports.items():
        add(UP, (name,), float(name not in seen.down))
        add(SPEED, (name,), float(topology.cable[port].rate_bps))
    for name, counters in (PORT_COUNTERS[framing](seen.ports) if seen.ports else {}).items():
        for counter, value in counters.items():
            pattern, number = _split(counter, framing)
            if pattern in port_metrics(framing):
                add(port_metrics(framing)[pattern], (name, *number), value)
    for name, cells in seen.ports.items():
        for level, metric in level_metrics().items():
            add(metric, (name,), sum(cells[level]))
    for counter, value in seen.nic.items():
        if counter in nic_metrics():  # the port's PortXmitWait is there, too
            add(nic_metrics()[counter], (), value)
    return found.values()


def _split(name: str, framing: Framing) -> tuple[str, tuple[str, ...]]:
    """A public name with N, and the number that stood there."""
    return _patterns(framing).get(name, (name, ()))


@cache
def _patterns(framing: Framing) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {
        with_number(name, number): (name, (str(number),))
        for name in PORT.described[framing]
        if NUMBERED.search(name)
        for number in range(CLASSES[framing])
    }
