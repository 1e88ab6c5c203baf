"""Compiles Python's bytecode, so that no process has to.

A lab starts several Python processes, and each imports hundreds of modules. Python itself writes
bytecode when it imports a module, but not where the user may not write, nor with
PYTHONDONTWRITEBYTECODE. Every process then compiles all modules anew, which takes longer than a
small run. Bytecode that is older than its source is ignored, so it can never be wrong.
"""

from __future__ import annotations

from compileall import compile_dir

from emu._build.core import ROOT

_PACKAGES = ("emu", "traffic", "topologies")


def build() -> None:
    """Brings the bytecode of all modules up to date, where this user may write."""
    for package in _PACKAGES:
        compile_dir(ROOT / package, quiet=2)
