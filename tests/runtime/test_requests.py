"""Requests on the virtual clock: on an idle fabric all messages take equally long."""

from __future__ import annotations

import numpy as np
import pytest

from emu.measure.requests import UNFINISHED, latencies
from tests.support.small_fabrics import finish, spec_of, started

SPEC = """
name: sequence
topology: {kind: leaf-spine, spines: 1, leaves: 1, hosts_per_leaf: 3}
traffic:
  - {name: a, pattern: pair, from: h1, to: h2, size: 64KB, count: 20, start: 5us}
"""

FLOW_CONTROL_NS = 5
"""A flow-control packet on each of two links, and the rounding of two times."""


@pytest.mark.parametrize("fabric", ["roce", "ib"])
@pytest.mark.parametrize("op", ["write", "send", "read"])
def test_consecutive_messages_take_as_long_as_one(fabric: str, op: str) -> None:
    """Each of twenty lasts as long as a single one, except for flow-control packets in between."""
    settings = (f"fabric={fabric}", f"traffic.0.op={op}")
    with started(spec_of(SPEC, *settings)) as run:
        finish(run)
        (latency,) = latencies(run.observe().requests)
    with started(spec_of(SPEC, *settings, "traffic.0.count=1")) as run:
        flow = finish(run).flows["a"]
    assert flow.end_ns is not None
    alone_ns = flow.end_ns - flow.start_ns
    assert (latency.requests, latency.unfinished) == (20, 0)
    assert latency.p50_ns == pytest.approx(alone_ns, abs=FLOW_CONTROL_NS)
    assert latency.max_ns == pytest.approx(alone_ns, abs=FLOW_CONTROL_NS)


def test_requests_in_flight_are_unfinished() -> None:
    """Observed in the middle of a run: finished requests, the request in flight, and those not
    started."""
    with started(spec_of(SPEC)) as run:
        run.run_until(50_000)
        requests = run.observe().requests
    begun, over = requests.start_ns != UNFINISHED, requests.end_ns != UNFINISHED
    assert 0 < over.sum() < begun.sum() < len(over)
    assert begun.sum() == over.sum() + 1
    assert np.all(requests.end_ns[over] > requests.start_ns[over])
