"""The nodes that a management network adds to those of the fabric."""

from __future__ import annotations

COLLECTOR = "mgmt"
"""The place of collectors, on the management network alone."""
SWITCH = "mgmt_switch"
"""The management network's own switch. No host or switch can have such a long name."""
NODES = (COLLECTOR, SWITCH)
