"""Facts about OpenSM's routing engines that specs, subnets and reports use."""

from __future__ import annotations

ENGINES_WITH_LEVELS = ("lash", "dfsssp", "nue")
"""Engines that set a path's service level in path records, in place of the NIC's own."""
ENGINE_THAT_DRAWS_LEVELS = "dfsssp"
"""It draws the level of each path record that it is asked for, among those the path may use."""
