"""Contradictions: keys that are right each for itself and wrong together.

A rule is a function from a spec to findings, named after what must hold; each
file here ends with the list of its own. A finding tells the reason and the
remedy, at the key that a user would most likely change, and names the other
keys it rests on.

Most rules look at the fabric's graph, so those about the topology come first,
and the others are not asked when it is unsound.
"""

from __future__ import annotations

from emu.spec.finding import Finding
from emu.spec.rules import checks, hosts, plane, switches, topology, traffic
from emu.spec.scenario import Spec

_RULES = (*plane.RULES, *switches.RULES, *hosts.RULES, *traffic.RULES, *checks.RULES)


def contradictions(spec: Spec) -> list[Finding]:
    """Everything in a spec that contradicts itself."""
    found = [finding for rule in topology.RULES for finding in rule(spec)]
    if not found:
        found = [finding for rule in _RULES for finding in rule(spec)]
    return found
