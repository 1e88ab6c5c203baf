"""Contradictions: keys that are valid by themselves but not together.

A rule is a function from a spec to findings, and its name states the requirement. Each file here
ends with the list of its rules. A finding is at the key that a user would most likely change. It
states the reason and the remedy, and refers to the other keys that it depends on.

Most rules use the fabric's graph, and some use every flow. So the rules about a valid graph and a
limited number of flows come first. If they find an error, the rules that rely on them do not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from emu.spec.diagnostic import Diagnostic
from emu.spec.rules import (
    bgp,
    checks,
    devices,
    faults,
    hosts,
    management,
    operations,
    plane,
    routing,
    subnet,
    switches,
    topology,
    traffic,
    vlans,
)
from emu.spec.scenario import Spec

Rule = Callable[[Spec], Iterable[Diagnostic]]
_ON_THE_GRAPH = (
    *topology.RULES,
    *plane.RULES,
    *switches.RULES,
    *hosts.RULES,
    *devices.RULES,
    *faults.RULES,
    *routing.ON_THE_GRAPH,
    *bgp.RULES,
    *management.RULES,
    *vlans.RULES,
)
_ON_THE_FLOWS = (
    *traffic.RULES,
    *operations.RULES,
    *subnet.RULES,
    *checks.RULES,
    *routing.ON_THE_FLOWS,
)


def contradictions(spec: Spec) -> list[Diagnostic]:
    """All contradictions in a spec."""
    found = _ask(topology.SOUND, spec)
    if found:
        return found
    unknown_flows = _ask(traffic.SOUND, spec)
    found = _ask(_ON_THE_GRAPH, spec) + unknown_flows
    return found if unknown_flows else found + _ask(_ON_THE_FLOWS, spec)


def _ask(rules: Sequence[Rule], spec: Spec) -> list[Diagnostic]:
    return [finding for rule in rules for finding in rule(spec)]
