"""Parameters of congestion controls, under their authors' or vendors' names.

A control is one file here with one model, which registers itself, and one in the core with the
same rules: `emu/core/nic/cc_*.c`. `emu/spec/cc_keys.py` gives a NIC a key for each.
"""

from emu.registry import import_modules
from emu.spec.congestion_control.control import Control
from emu.spec.congestion_control.registry import CONTROLS

__all__ = ["CONTROLS", "Control"]

import_modules(__name__, __path__)
