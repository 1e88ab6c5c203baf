"""`make setup` compiles the bytecode that Python itself may not write."""

from __future__ import annotations

from importlib.util import cache_from_source
from pathlib import Path

import pytest

from emu._build import bytecode


def test_all_modules_are_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where Python writes none by itself."""
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setattr(bytecode, "ROOT", tmp_path)
    modules = [tmp_path / name for name in ("emu/a.py", "emu/lab/b.py", "traffic/c.py")]
    for module in modules:
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text("one = 1\n")
    bytecode.build()
    assert all(Path(cache_from_source(str(module))).exists() for module in modules)
