"""Equal ports of which one was crowded: what is told, and when nothing is."""

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
    """What leaf2's cables to both spines carried, as shares of their time, and what stood."""
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


def test_a_crowded_port_beside_an_empty_one_is_told_with_what_spreads_flows() -> None:
    """On the page of the run, and in a comparison with the run's name."""
    (told,) = uneven_ports(crowded())
    assert told.startswith(
        "Equal ports did not carry alike: of the 2 of leaf2 to the same hosts leaf2:spine1 sent "
        "80%; for 60"
    )
    assert " us it was full, and packets waited for it while none did for leaf2:spine2. " in told
    assert told.endswith("flowlet, adaptive or spray, spread what a hash puts together.")
    assert f"In roce-pfc: {told}" in findings([crowded(), four_fabrics()[3]])


def test_uneven_ports_that_nothing_waits_for_are_no_trouble() -> None:
    """One flow has one port; its host has no more to send."""
    pfc = four_fabrics()[1]
    assert uneven_ports(with_uplinks(pfc, (1.0, 0.0), (0, 0))) == []


def test_ports_that_are_both_crowded_are_no_trouble_of_their_choice() -> None:
    """There is too much for them together, or flow control stops them."""
    pfc = four_fabrics()[1]
    assert uneven_ports(with_uplinks(pfc, (1.0, 0.7), (QUEUE, QUEUE))) == []
    assert uneven_ports(with_uplinks(pfc, (0.5, 0.1), (QUEUE, 0))) == []
    assert uneven_ports(with_uplinks(pfc, (1.0, 0.95), (QUEUE, 0))) == []


def test_what_spreads_is_told_by_fabric_and_not_where_a_fault_or_the_spec_chose() -> None:
    ib = with_uplinks(four_fabrics()[3], (1.0, 0.25), (QUEUE, 0))
    assert "what the subnet manager's tables put together" in uneven_ports(ib)[0]
    (told,) = uneven_ports(fresh(crowded(), faults=FAULTS))
    assert told.endswith("while none did for leaf2:spine2.")
    sprayed = replace(crowded(), spec=spec(switches={"routing": {"kind": "spray"}}))
    assert uneven_ports(sprayed)[0].endswith("while none did for leaf2:spine2.")


def test_nothing_is_told_of_a_run_that_cannot_be_believed() -> None:
    assert uneven_ports(fresh(crowded(), fidelity=INCONCLUSIVE)) == []
