"""Contradictions: keys that are right each for itself and wrong together.

A rule is a function from a spec to findings, named after what must hold; each
file here ends with the list of its own. A finding tells the reason and the
remedy, at the key that a user would most likely change, and names the other
keys it rests on.

Most rules look at the fabric's graph, and some at every flow. So those come first
that say whether the graph is sound and the flows can be counted; the others are not
asked when they found something.
"""

from __future__ import annotations

from emu.spec.finding import Finding
from emu.spec.rules import checks, hosts, plane, switches, topology, traffic
from emu.spec.scenario import Spec

_SOUND = (*topology.SOUND, *traffic.SOUND)
_RULES = (
    *topology.RULES,
    *plane.RULES,
    *switches.RULES,
    *hosts.RULES,
    *traffic.RULES,
    *checks.RULES,
)


def contradictions(spec: Spec) -> list[Finding]:
    """Everything in a spec that contradicts itself."""
    found = [finding for rule in _SOUND for finding in rule(spec)]
    if not found:
        found = [finding for rule in _RULES for finding in rule(spec)]
    return found
