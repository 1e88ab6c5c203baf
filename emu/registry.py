"""Registries: packages in which each module enters what it defines into a table."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules


def import_modules(package: str, path: Iterable[str]) -> None:
    """Imports every module of a package, so that each can register itself."""
    for module in iter_modules(path):
        import_module(f"{package}.{module.name}")
