"""The management network costs the fabric nothing: emulated results are the same to the byte."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.background_lab import at_home, lab_up
from tests.support.exact_lab import EXACT, emu, finish_traffic
from tests.support.managed_lab import NODES, SPEC, fabric_counters
from tests.support.needs import need
from tests.support.user import User, wait

pytestmark = pytest.mark.timeout(300)
SCRAPING = "while :; do for node in {}; do curl -s http://$node:9100/metrics; done; done"


@pytest.fixture
def me(myself: User) -> User:
    need("nftables")
    return at_home(myself)


def results(user: User) -> tuple[list[dict[str, Any]], Any]:
    """The flows of the traffic, and every counter of the fabric."""
    emu(user, "traffic", "start")
    return finish_traffic(user), fabric_counters(user)


def test_results_are_the_same_with_and_without_it(me: User) -> None:
    """M8: also while exporters are read without a pause, and the network is flooded."""
    with lab_up(me, SPEC.replace("management: on", "management: off"), *EXACT):
        without = results(me)
    scraping = SCRAPING.format(" ".join(NODES))
    with lab_up(me, SPEC, *EXACT):
        load = me.emu("exec", "mgmt", "--", "sh", "-c", f"{scraping} > /dev/null")
        flood = me.emu("exec", "mgmt", "--", "ping", "-q", "-f", "h1")
        with_it = results(me)
        assert load.poll() is None
        assert flood.poll() is None
        for process in (load, flood):
            process.terminate()
            wait(process)
    assert with_it == without
    assert without[0][0]["completed"]
