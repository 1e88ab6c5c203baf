"""Rules for the management network."""

from __future__ import annotations

from collections.abc import Iterator

from emu.spec.diagnostic import Diagnostic, KeyPath, unknown_name
from emu.spec.management import ALL, MOST_NODES
from emu.spec.management_names import COLLECTOR
from emu.spec.scenario import Spec

_MANAGEMENT: KeyPath = ("management",)


def its_switch_has_enough_ports(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    nodes = len(topology.hosts) + len(topology.switches)
    if spec.management is not None and nodes > MOST_NODES:
        yield Diagnostic(
            _MANAGEMENT,
            f"the fabric has {nodes:,} hosts and switches, and a bridge of the kernel has ports "
            f"for {MOST_NODES:,} and the collector; use management: off, or a smaller fabric",
            about=(("topology",),),
        )


def its_nodes_have_names_of_their_own(spec: Spec) -> Iterator[Diagnostic]:
    topology = spec.topology.build()
    for name in (COLLECTOR, "lo"):
        if spec.management is not None and name in (*topology.host, *topology.switch):
            yield Diagnostic(
                _MANAGEMENT,
                f"its switch has an interface {name} of its own, so no host or switch may have "
                "that name; give it another one",
                about=(("topology",),),
            )


def allowed_nodes_exist(spec: Spec) -> Iterator[Diagnostic]:
    if spec.management is None:
        return
    topology = spec.topology.build()
    nodes = [*topology.host, *topology.switch]
    for index, entry in enumerate(spec.management.allow):
        for key, names in (("from", entry.from_), ("to", entry.to)):
            for name in names:
                if name not in (*nodes, COLLECTOR, ALL):
                    path = (*_MANAGEMENT, "allow", index, key)
                    what = unknown_name("host or switch", name, nodes)
                    yield Diagnostic(path, f"{what}; {COLLECTOR} and {ALL} are names here, too")


RULES = (
    its_switch_has_enough_ports,
    its_nodes_have_names_of_their_own,
    allowed_nodes_exist,
)
