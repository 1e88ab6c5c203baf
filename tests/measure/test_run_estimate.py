"""The estimate of a run, against what the run needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emu.errors import HostError
from emu.measure.run_estimate import estimate_of
from emu.runtime.record import announce
from emu.runtime.virtual import VirtualRunner
from emu.spec.model import Spec, spec_from_mapping


def fat_tree(k: int, **traffic: Any) -> Spec:
    among = f"h1-h{k**3 // 4}"
    entry = {"name": "p", "pattern": "permutation", "among": among, "size": "40KB", **traffic}
    data: dict[str, Any] = {
        "name": "test",
        "topology": {"kind": "fat-tree", "k": k},
        "payload": "elided",
        "switches": {"buffer": "16MB", "pfc": "on"},
        "traffic": [entry],
    }
    return spec_from_mapping(data, source="test", folder=Path())


@pytest.mark.parametrize(
    "traffic",
    [{}, {"pattern": "all-to-all", "size": "4KB"}, {"pattern": "all-reduce", "size": "160KB"}],
    ids=["permutation", "all-to-all", "all-reduce"],
)
def test_link_hops_are_those_of_the_run(traffic: dict[str, Any], tmp_path: Path) -> None:
    """Within a factor of 1.5: data packets, and those that answer them."""
    spec = fat_tree(4, **traffic)
    totals = VirtualRunner().run(spec, out=tmp_path).totals
    hops = totals["packets"] + totals["packet_hops"]
    assert hops / 1.5 < estimate_of(spec).link_hops < 1.5 * hops


def test_estimates_grow_like_the_fabric() -> None:
    """Eight times the hosts, and the ports: at most nine times the memory and 15 times the time
    beyond those of a process (paths become no longer, and caches hold less)."""
    base, small, large = (estimate_of(fat_tree(k)) for k in (2, 8, 16))
    memory = [own.memory_bytes - base.memory_bytes for own in (small, large)]
    seconds = [own.seconds - base.seconds for own in (small, large)]
    assert 7 < memory[1] / memory[0] < 10
    assert 7 < seconds[1] / seconds[0] < 15


def test_payload_is_in_memory_twice() -> None:
    """At the sender and at the receiver, if it is real."""
    elided = fat_tree(4, size="100MB")
    real = elided.model_copy(update={"payload": "real"})
    more = estimate_of(real).memory_bytes - estimate_of(elided).memory_bytes
    assert more == 2 * elided.workload().total_bytes


def test_a_run_that_cannot_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it begins, with how to make it smaller."""
    monkeypatch.setattr("emu.runtime.record.free_memory_bytes", lambda: 1_000_000_000)
    spec = fat_tree(4, size="100MB").model_copy(update={"payload": "real"})
    with pytest.raises(HostError, match="and 1 GB of memory are free") as caught:
        announce(spec, estimate_of(spec), quiet=True)
    assert "payload: elided" in str(caught.value.remedy)


def test_a_large_run_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """From 1,024 hosts on, unless it is quiet."""
    small, large = ((spec, estimate_of(spec)) for spec in (fat_tree(8), fat_tree(16)))
    announce(*small, quiet=False)
    announce(*large, quiet=True)
    assert capsys.readouterr().err == ""
    announce(*large, quiet=False)
    assert "takes about" in capsys.readouterr().err


def test_the_threads_that_are_asked_for_count() -> None:
    """A run on one thread takes longer than one on eight."""
    spec = fat_tree(16, size="4MB")
    one, eight = (VirtualRunner().with_threads(threads).estimate(spec) for threads in (1, 8))
    assert one.seconds > 2 * eight.seconds
