"""Makes what a process imports after it take less time. Programs of emu import it first."""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module

_OBJECTS_BETWEEN_COLLECTIONS = 1_000_000
"""Modules, a spec, a recording and a report are large trees without cycles. Python's default of 700
lets the garbage collector walk them so often that it takes a sixth of a process's start, and a
quarter of a large run's time."""

gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)

with suppress(ImportError):
    # Mininet imports `distutils`. Python's own will do; that of setuptools brings all of it along.
    import_module("_distutils_hack").remove_shim()
