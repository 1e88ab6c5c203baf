"""Parameters of congestion controls, under the names that their makers gave them.

A control is one file with one model. `Nic` in `emu/spec/host.py` has a key for
each, and the core a file of the same rules: `emu/core/nic/cc_*.c`.
"""

from emu.spec.congestion_control.cct import Cct
from emu.spec.congestion_control.control import Control
from emu.spec.congestion_control.dcqcn import Dcqcn
from emu.spec.congestion_control.dctcp import Dctcp
from emu.spec.congestion_control.roce_cc_ecn import RoceCcEcn
from emu.spec.congestion_control.swift import Swift

__all__ = ["Cct", "Control", "Dcqcn", "Dctcp", "RoceCcEcn", "Swift"]
