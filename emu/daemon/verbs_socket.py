"""The socket at which verbs programs reach the NICs of a lab. A file of its own: `emu exec` needs
nothing else of them."""

from __future__ import annotations

from emu.lab.namespace import PRIVATE

PLACE = PRIVATE / "verbs"
"""In the lab's own file system."""
VARIABLE = "EMU_VERBS"
"""The environment variable that names the socket to the library."""
