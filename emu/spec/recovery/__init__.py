"""Loss recoveries.

A recovery is one file here, which registers itself, and one in the core with the same name:
`emu/core/nic/recovery_*.c`.
"""

from typing import TYPE_CHECKING, Literal

from emu.registry import import_modules
from emu.spec.recovery.scheme import RECOVERIES, Recovery

__all__ = ["RECOVERIES", "Recovery", "RecoveryName"]

import_modules(__name__, __path__)

if TYPE_CHECKING:
    RecoveryName = str
else:
    RecoveryName = Literal[tuple(RECOVERIES)]
"""The type of the spec's key. The type checker cannot know the names."""
