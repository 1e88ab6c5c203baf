"""`slowdown: auto`, with a stub machine of known speed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emu.measure.recording import Recording, Series
from emu.measure.records import Fidelity
from emu.runtime import slowdown
from emu.runtime.slowdown import choose_slowdown
from emu.spec.model import Spec, spec_from_text

SPEC = """
topology: {kind: leaf-spine, spines: 2, leaves: 2, hosts_per_leaf: HOSTS}
traffic: [{name: all, pattern: incast, from: h2-hLAST, to: h1, op: write, size: 1MB}]
"""


def spec_of(hosts_per_leaf: int, *settings: str) -> Spec:
    text = SPEC.replace("HOSTS", str(hosts_per_leaf)).replace("LAST", str(2 * hosts_per_leaf))
    return spec_from_text(text.encode(), source="test.emu.yml", settings=settings)


class Machine:
    """A stub that keeps up from the slowdown `least` on."""

    def __init__(self, least: float) -> None:
        self.least = least
        self.tried: list[float] = []

    def run(self, spec: Spec, at: float, out: Path) -> Recording:
        self.tried.append(at)
        verdict = "ok" if at >= self.least else "inconclusive"
        return replace(RECORDING, fidelity=Fidelity(verdict=verdict))

    def choose(self, spec: Spec) -> tuple[float, tuple[str, ...]]:
        said: list[str] = []
        return choose_slowdown(spec, self.run, said.append)


_none: Any = np.zeros((0, 0), np.int64)
RECORDING = Recording(
    name="reference",
    fabric="roce",
    plane="ovs",
    clock="real",
    slowdown=1,
    seed=1,
    marker="none",
    flows=(),
    ports={},
    hosts={},
    totals={},
    series=Series(np.zeros(0, np.int64), (), _none, _none, _none, _none, _none, (), _none),
    fidelity=Fidelity(),
    wall_seconds=0,
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache for each test. The process forgets what earlier tests found."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    slowdown._least_slowdown.cache_clear()
    yield tmp_path / "emu/machine.json"
    slowdown._least_slowdown.cache_clear()


def test_a_number_in_the_spec_is_used_as_is() -> None:
    machine = Machine(1000)
    assert machine.choose(spec_of(4, "slowdown=123")) == (123, ())
    assert machine.tried == []


def test_the_chosen_slowdown_has_a_margin() -> None:
    """The reference fabric needs about as much as eight hosts on two leaves."""
    machine = Machine(900)
    chosen, why = machine.choose(spec_of(4))
    assert 1.3 * 1000 <= chosen <= 1.5 * 1000
    assert "down to 1000" in why[0]


def test_twice_the_hosts_get_twice_the_slowdown() -> None:
    machine = Machine(900)
    few, _ = machine.choose(spec_of(8))
    many, _ = machine.choose(spec_of(16))
    assert many == pytest.approx(2 * few, rel=0.1)


def test_a_machine_is_tried_once(cache: Path) -> None:
    """Later runs, also in other processes, take the result from the cache."""
    first = Machine(900)
    chosen = first.choose(spec_of(4))
    assert cache.exists()
    slowdown._least_slowdown.cache_clear()
    second = Machine(5000)
    assert second.choose(spec_of(4)) == chosen
    assert second.tried == []


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is neither HOME nor an entry in the list of users, so nothing is read or written."""

    def nobody(uid: int) -> None:
        raise KeyError(uid)

    for variable in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    slowdown._write_cache({"shim": 1000})
    assert slowdown._read_cache() == {}


OF_NO_USE: tuple[Any, ...] = (None, [200], {}, {"ovs": "fast"}, {"ovs": 0}, {"ovs": [200]})


@pytest.mark.parametrize(
    "content",
    [
        *(b"{", b"\xff\xfe", b"[]", b"null", b"3", b"{}", b'{"least_slowdown": {"ovs": 200}}'),
        *(
            json.dumps({"machine": slowdown._machine(), "least_slowdown": own}).encode()
            for own in OF_NO_USE
        ),
    ],
)
def test_a_broken_cache_is_rewritten(cache: Path, content: bytes) -> None:
    """Valid JSON with wrong content counts as broken."""
    expected = Machine(900).choose(spec_of(4))
    written = cache.read_bytes()
    cache.write_bytes(content)
    slowdown._least_slowdown.cache_clear()
    machine = Machine(900)
    assert machine.choose(spec_of(4)) == expected
    assert machine.tried
    assert cache.read_bytes() == written


def test_a_machine_that_never_keeps_up_gets_an_uncached_guess(cache: Path) -> None:
    chosen, why = Machine(1e9).choose(spec_of(4))
    assert "guess" in why[0]
    assert chosen > 0
    assert not cache.exists()
