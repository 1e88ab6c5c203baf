"""Any configuration is an error of the user's, or becomes a spec that survives an export."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.errors import EmuError
from emu.sonic.mapping import import_folder
from tests.support.sonic_configs import contrast, two_tiers, whole_example, write
from tests.support.sonic_round_trips import differing_rows, exported, imported

FABRICS = ({"leaf1": whole_example()}, two_tiers(), {"tor": contrast()})
VALUES: tuple[Any, ...] = (
    *("", "0", "1", "-1", "7", "100", "1500", "99999999999", "3,4", "40m", "0m", "NULL", "x"),
    *("STRICT", "WRR", "ecn_none", "down", "ToRRouter", "LeafRouter", "Server", "Ethernet0"),
    *("AZURE", "[DSCP_TO_TC_MAP|AZURE]", {}, {"a": "b"}, [], None, 5, 1.5, True),
)


def places(config: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every table, row and field."""
    for key in config if isinstance(config, dict) else ():
        yield (*path, key)
        yield from places(config[key], (*path, key))


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A fabric with up to three parts removed, or replaced by something else."""
    configs: dict[str, Any] = deepcopy(draw(st.sampled_from(FABRICS)))
    for _ in range(draw(st.integers(1, 3))):
        paths = [path for path in places(configs) if len(path) > 1]
        *above, last = paths[draw(st.integers(0, len(paths) - 1))]
        part = configs
        for key in above:
            part = part[key]
        if draw(st.booleans()):
            del part[last]
        else:
            part[last] = deepcopy(draw(st.sampled_from(VALUES)))
    return configs


@given(damaged())
@settings(max_examples=40, deadline=None)
def test_a_damaged_configuration_is_an_error_or_round_trips(configs: dict[str, Any]) -> None:
    with TemporaryDirectory(prefix="emu-test-") as folder:
        try:
            first = imported(Path(folder, "first"), configs)
        except EmuError:
            return
        back = exported(first.spec, Path(folder, "second"))
        assert differing_rows(first, back) == []
        assert import_folder(back).data == first.data


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_an_error(text: bytes) -> None:
    with TemporaryDirectory(prefix="emu-test-") as folder:
        write(Path(folder), {})
        Path(folder, "leaf1.json").write_bytes(text)
        with pytest.raises(EmuError, match=r"leaf1\.json"):
            import_folder(Path(folder))
