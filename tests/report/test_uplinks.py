"""Equal-cost ports of which one is crowded: the report and its limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from emu.report.findings import findings
from emu.report.run_view import RunFacts
from emu.report.uplinks import uneven_ports
from tests.support.synthetic import FAULTS, INCONCLUSIVE, four_fabrics, spec

FULL_BPS = 100e9
QUEUE = 1_000_000


def with_uplinks(run: RunFacts, busy: tuple[float, float], queues: tuple[int, int]) -> RunFacts:
    """A run in which leaf2's two uplinks have these utilisations and queue depths."""
    series = run.recording.series
    tx_bytes, queue_bytes = series.tx_bytes.copy(), series.queue_bytes.copy()
    for port, share, queue in zip(("leaf2:spine1", "leaf2:spine2"), busy, queues, strict=True):
        column = run.sampled[port]
        tx_bytes[:, column] = (series.time_ns * share * FULL_BPS / 8e9).astype(np.int64)
        queue_bytes[:, column] = queue
    own = replace(series, tx_bytes=tx_bytes, queue_bytes=queue_bytes)
    return fresh(run, series=own)


def fresh(run: RunFacts, **changes: Any) -> RunFacts:
    return RunFacts(run.name, replace(run.recording, **changes), run.spec, run.topology)


def crowded() -> RunFacts:
    return with_uplinks(four_fabrics()[1], (1.0, 0.25), (QUEUE, 0))


def test_a_crowded_port_beside_an_idle_one_is_reported() -> None:
    """The page of the run has the sentence with a remedy, and a comparison adds the run's name."""
    (told,) = uneven_ports(crowded())
    assert told.startswith(
        "Equal ports had unequal loads: of the 2 ports of leaf2 to the same hosts, leaf2:spine1 "
        "sent 80%; for 60"
    )
    assert " us, packets waited for its full cable while none waited for leaf2:spine2. " in told
    assert told.endswith("flowlet, adaptive or spray, spread flows that a hash puts on one port.")
    assert f"In roce-pfc: {told}" in findings([crowded(), four_fabrics()[3]])


def test_uneven_ports_without_queues_are_not_reported() -> None:
    """One flow uses one port, and its host has no more to send."""
    pfc = four_fabrics()[1]
    assert uneven_ports(with_uplinks(pfc, (1.0, 0.0), (0, 0))) == []


def test_ports_that_are_both_crowded_are_not_reported() -> None:
    """There is too much traffic for both, or flow control stops them."""
    pfc = four_fabrics()[1]
    assert uneven_ports(with_uplinks(pfc, (1.0, 0.7), (QUEUE, QUEUE))) == []
    assert uneven_ports(with_uplinks(pfc, (0.5, 0.1), (QUEUE, 0))) == []
    assert uneven_ports(with_uplinks(pfc, (1.0, 0.95), (QUEUE, 0))) == []


def test_the_remedy_depends_on_fabric_fault_and_routing() -> None:
    ib = with_uplinks(four_fabrics()[3], (1.0, 0.25), (QUEUE, 0))
    assert "the subnet manager's tables put on one port" in uneven_ports(ib)[0]
    (told,) = uneven_ports(fresh(crowded(), faults=FAULTS))
    assert told.endswith("while none waited for leaf2:spine2.")
    sprayed = replace(crowded(), spec=spec(switches={"routing": {"kind": "spray"}}))
    assert uneven_ports(sprayed)[0].endswith("while none waited for leaf2:spine2.")


def test_inconclusive_runs_are_not_reported() -> None:
    assert uneven_ports(fresh(crowded(), fidelity=INCONCLUSIVE)) == []
