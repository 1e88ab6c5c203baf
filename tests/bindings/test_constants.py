"""Python takes the core's constants from cffi and does not repeat them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from emu._build.core import CORE, ROOT, enums
from emu._core import lib
from emu.measure.timeline import LOSSES

PACKAGES = ("bindings", "daemon", "lab", "measure", "rdma", "runtime")
ALLOWED = {"emu/lab/marker/marker.py: PRIORITIES"}
"""The build imports this module before the core exists."""


def constants_of_the_core() -> set[str]:
    """The enumerators of all headers of the core."""
    headers = (ROOT / CORE).glob("*/*.h")
    return {
        name
        for header in headers
        for members in re.findall(r"\{([^}]*)\}", enums(header.read_text()))
        for name in re.findall(r"\b[A-Z]\w+", members)
    }


def numbers_of(path: Path) -> Iterator[str]:
    """Names to which a module assigns a number, without leading underscores."""
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant(int())):
                yield name.lstrip("_")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_repeats_a_constant_of_the_core(package: str) -> None:
    core = constants_of_the_core()
    repeated = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "emu" / package).rglob("*.py"))
        for name in numbers_of(path)
        if name in core
    }
    assert repeated <= ALLOWED


def test_every_way_to_lose_a_frame_has_a_name() -> None:
    assert len(LOSSES) == lib.LOSSES
