"""`hosts.cpu` of a spec."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from emu.spec.host import HostDefaults


@pytest.mark.parametrize(
    ("text", "factor", "written"),
    [
        ("free", 0, "free"),
        ("measured", 1, "measured x 1"),
        ("measured x 2", 2, "measured x 2"),
        ("measured x 0.5", 0.5, "measured x 0.5"),
    ],
)
def test_cpu_is_read_and_written(text: str, factor: float, written: str) -> None:
    hosts = HostDefaults.model_validate({"cpu": text})
    assert hosts.cpu == factor
    assert hosts.model_dump(mode="json")["cpu"] == written
    assert HostDefaults.model_validate({"cpu": written}) == hosts


def test_computing_is_free_by_default() -> None:
    assert HostDefaults().cpu == 0


@pytest.mark.parametrize("text", ["measured x 0", "measured x -1", "measured x", "fast", 2, None])
def test_unknown_cpu_is_refused(text: object) -> None:
    with pytest.raises(ValidationError, match="write `free`, or `measured x FACTOR`"):
        HostDefaults.model_validate({"cpu": text})
