"""Verbs programs on the real clock: the same programs with the same results."""

from __future__ import annotations

import sys

from emu.rdma import Lab
from examples.rdma_ping import ping
from tests.support.background_lab import at_home
from tests.support.traces import Outside
from tests.support.user import ROOT, User, wait

EXAMPLE = str(ROOT / "examples" / "rdma_ping.py")


def _expect_the_same_on_both_clocks(user: User, fabric: str) -> None:
    """Run the example, which checks its bytes. Times are at most half above the virtual clock's."""
    path = user.home.parent / "verbs.emu.yml"
    path.write_text(
        f"name: verbs\nfabric: {fabric}\nslowdown: 60000\n"
        "topology: {kind: leaf-spine, spines: 1, leaves: 2, hosts_per_leaf: 3}\n"
    )
    before = Outside.now(user)
    ended = wait(user.start(sys.executable, EXAMPLE, str(path), "real"))
    assert ended.code == 0, ended.err
    assert Outside.now(user) == before
    with Lab(path) as lab:
        expected = {what: ns / 1000 for what, ns in lab.run(ping(lab)).items()}
    seen = {line[:14].strip(): float(line[14:].split()[0]) for line in ended.out.splitlines()}
    assert seen.keys() == expected.keys()
    for what, time_us in seen.items():
        assert expected[what] <= time_us + 0.1 < 1.5 * expected[what], what


def test_the_example_on_roce(user: User) -> None:
    """The users are root and an ordinary user."""
    _expect_the_same_on_both_clocks(at_home(user), "roce")


def test_the_example_on_infiniband(myself: User) -> None:
    """The addresses are LIDs from the lab's OpenSM."""
    _expect_the_same_on_both_clocks(at_home(myself), "ib")
