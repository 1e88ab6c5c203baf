"""What is known of OpenSM's routing engines, for specs, subnets and reports alike."""

from __future__ import annotations

ENGINES_WITH_LEVELS = ("lash", "dfsssp", "nue")
"""Those that say in path records which service level a path has; a NIC's own is not asked for."""
