"""Contradictions: keys that are right each for itself and wrong together.

A rule is a function from a spec to findings, named after what must hold; each
file here ends with the list of its own. A finding tells the reason and the
remedy, at the key that a user would most likely change, and names the other
keys it rests on.

Most rules look at the fabric's graph, and some at every flow. So those come first
that say whether the graph is sound and the flows can be counted; where they find
something, those that rely on it are not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from emu.spec.diagnostic import Diagnostic
from emu.spec.rules import (
    checks,
    faults,
    hosts,
    operations,
    plane,
    routing,
    subnet,
    switches,
    topology,
    traffic,
)
from emu.spec.scenario import Spec

Rule = Callable[[Spec], Iterable[Diagnostic]]
_ON_THE_GRAPH = (
    *topology.RULES,
    *plane.RULES,
    *switches.RULES,
    *hosts.RULES,
    *faults.RULES,
    *routing.ON_THE_GRAPH,
)
_ON_THE_FLOWS = (
    *traffic.RULES,
    *operations.RULES,
    *subnet.RULES,
    *checks.RULES,
    *routing.ON_THE_FLOWS,
)


def contradictions(spec: Spec) -> list[Diagnostic]:
    """Everything in a spec that contradicts itself."""
    found = _ask(topology.SOUND, spec)
    if found:
        return found
    unknown_flows = _ask(traffic.SOUND, spec)
    found = _ask(_ON_THE_GRAPH, spec) + unknown_flows
    return found if unknown_flows else found + _ask(_ON_THE_FLOWS, spec)


def _ask(rules: Sequence[Rule], spec: Spec) -> list[Diagnostic]:
    return [finding for rule in rules for finding in rule(spec)]
