"""Debian's ibv_rc_pingpong, unmodified, between two hosts of a lab on the exact clock."""

from __future__ import annotations

import shutil

import pytest

from tests.support.background_lab import at_home, lab_up
from tests.support.exact_lab import EXACT
from tests.support.lab_fabrics import INFINIBAND, ROCE
from tests.support.user import Ended, User, wait
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(
    shutil.which("ibv_rc_pingpong") is None,
    reason="needs ibv_rc_pingpong: apt-get install ibverbs-utils",
)
EXCHANGES = 50
COMMAND = ("ibv_rc_pingpong", "-g", "0", "-n", str(EXCHANGES), "-c")
"""It compares every byte."""


def pingpong(user: User) -> Ended:
    """The client's end. The server must end well, too."""
    server = user.emu("exec", "h1", "--", *COMMAND)
    ended: list[Ended] = []

    def connects() -> bool:
        ended[:] = [user.run_emu("exec", "h2", "--", *COMMAND, "h1")]
        return "Couldn't connect" not in ended[0].err

    eventually(connects)
    assert wait(server).code == 0
    return ended[0]


def us_of(ended: Ended) -> float:
    """The emulated time of an exchange, in microseconds."""
    assert ended.code == 0, ended
    *_, value, unit = ended.out.split()
    assert unit == "usec/iter"
    return float(value)


@pytest.mark.parametrize("spec", [ROCE, INFINIBAND], ids=["roce", "infiniband"])
def test_pingpong_takes_the_same_time_again(user: User, spec: str) -> None:
    """The program measures all exchanges together, in whole microseconds."""
    own = at_home(user)
    with lab_up(own, spec, *EXACT):
        first, second = (us_of(pingpong(own)) for _ in range(2))
        assert 1 < first < 10
        assert abs(first - second) <= 1.01 / EXCHANGES
